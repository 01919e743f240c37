"""The pages of MiniWoB++ that training uses."""

# Pages with one or two kinds of steps: click, write, key. Answers are in the task or on the page.
EASY = """click-button click-button-sequence click-checkboxes click-checkboxes-transfer
click-checkboxes-soft click-collapsible click-color click-dialog click-dialog-2 click-link click-option
click-shape click-tab click-tab-2 click-test click-test-2 click-test-transfer click-widget enter-date
enter-password enter-text enter-text-2 enter-text-dynamic enter-time focus-text focus-text-2 grid-coordinate
identify-shape login-user login-user-popup multi-layouts multi-orderings navigate-tree read-table
search-engine simple-arithmetic text-transform use-autocomplete""".split()

# The other pages of the suite except three with airports, a colour wheel or a native popup, which no script
# can operate.
MORE = """bisect-angle buy-ticket choose-date choose-date-easy choose-date-medium circle-center
click-checkboxes-large click-collapsible-2 click-menu click-menu-2 click-pie click-shades click-tab-2-easy
click-tab-2-hard click-tab-2-medium copy-paste copy-paste-2 count-shape count-sides daily-calendar drag-box
drag-circle drag-items drag-items-grid drag-shapes drag-shapes-2 drag-single-shape drag-sort-numbers
draw-line email-inbox email-inbox-delete email-inbox-forward email-inbox-forward-nl
email-inbox-forward-nl-turk email-inbox-important email-inbox-nl-turk email-inbox-noscroll email-inbox-reply
email-inbox-star-reply find-midpoint find-word form-sequence form-sequence-2 form-sequence-3 generate-number
guess-number highlight-text highlight-text-2 number-checkboxes odd-or-even order-food phone-book
read-table-2 resize-textarea right-angle scroll-text scroll-text-2 sign-agreement simple-algebra
social-media social-media-all social-media-some terminal text-editor tic-tac-toe use-slider use-slider-2
use-spinner visual-addition""".split()

# Pages on which script events leave other states than real input, so that an oracle often repeats its action.
# They are played in a real browser (sources/episodes.py).
SCRIPTS_DIFFER = """click-menu click-menu-2 click-pie click-shades copy-paste copy-paste-2 daily-calendar
enter-time form-sequence-3 generate-number highlight-text highlight-text-2 order-food resize-textarea
scroll-text scroll-text-2 terminal text-editor use-slider use-slider-2""".split()
