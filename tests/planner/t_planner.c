/* t_planner.c - freely worded sentences on snapshots as programs describe them: the steps of each, or none. */
#include "check.h"

#include "plain/plain.h"
#include "plan_windows.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *window, *task,
        *plan; /* plan: all steps; "unsure", "refused": how it begins; with "~": what it contains */
} cases[] = {
#define IN(name) #name
    {IN(order), "Order a large shirt with gift wrapping",
     "1. choose \"Large\" in \"Size\"  2. tick \"Gift wrapping\"  3. press \"Order\""},
    {IN(order), "Please make it extra large", "not sure: 1. choose \"Extra large\" in \"Size\""},
    {IN(order), "Set the quantity to 3 and the colour to dark green",
     "~1. enter \"dark green\" into \"Colour\"  2. enter \"3\" into \"Quantity\""},
    {IN(order), "Turn on gift wrapping, then cancel", "1. tick \"gift wrapping\"  2. press \"Cancel\""},
    {IN(order), "Set the size to large", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "Buy a large shirt", "1. choose \"Large\" in \"Size\"  2. press \"Order\""},
    {IN(order), "Buy it", "1. press \"Order\""},
    {IN(order), "Order the large one", "1. choose \"Large\" in \"Size\"  2. press \"Order\""},
    /* statements, values without the name of a field, words of quantity that a name has */
    {IN(order), "The quantity should be 12", "not sure: 1. enter \"12\" into \"Quantity\""},
    {IN(order), "4 shirts in large", "unsure"},
    {IN(booking), "Book a suite for Hanna Vogel",
     "1. enter \"Hanna Vogel\" into \"Guest\"  2. choose \"Suite\" in \"Room\"  3. press \"Book\""},
    {IN(booking), "Stay for 4 nights, the email is a@b.org",
     "not sure: 1. enter \"a@b.org\" into \"Email\"  2. enter \"4\" into \"Nights\""},
    {IN(booking), "I changed my mind, cancel this", "1. press \"Cancel\""},
    {IN(booking), "Book both rooms", "unsure~both"},
    {IN(booking), "Enter Ana as the guest and the email", "unsure~email"},
    {IN(booking), "Book a suite with a sea view", "unsure~sea"},
    {IN(booking), "Book a suite for Hanna in Rome", "unsure"},
    {IN(booking), "Delete the booking of Hanna", "unsure"},
    {IN(order), "Order a large shirt with express delivery", "unsure~express"},
    {IN(order), "Choose the purple size", "unsure~purple"},
    {IN(order), "Write hello and export it as PDF", "unsure"},
    {IN(order), "Delete the shirt", "unsure"},
    {IN(editor), "Write \"hello\" and save it as letter.txt",
     "1. enter \"hello\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: save it as "
     "letter.txt"},
    {IN(editor), "Show the line numbers", "1. open menu \"View\" > \"Line Numbers\""},
    {IN(editor), "Turn off word wrap", "1. open menu \"View\" > \"Word Wrap\""},
    {IN(editor), "Save", "1. open menu \"File\" > \"Save\""},
    {IN(editor), "Quit the program", "1. open menu \"File\" > \"Quit\""},
    {IN(editor), "Replace \"a\" with \"b\"", "unsure"},
    {IN(order), "Cancel the order", "1. press \"Cancel\""},
    {IN(order), "Cancel and order", "unsure"},
    {IN(order), "Order it, then cancel", "unsure"},
    {IN(order), "Cancel the order of gift wrapping", "unsure"},
    {IN(tabs), "I'm done here, close the window", "unsure"},
    {IN(keys), "Press 4, then 2", "1. press \"4\"  then, in the window that opens: press 2"},
    {IN(keys), "Turn on 2 and 4", "unsure"},
    {IN(lamp), "Make it dark and turn the night light on",
     "1. choose \"Dark\" in \"Theme\"  2. tick \"Night light\"  3. press \"Apply\""},
    {IN(editor), "Save and convert it to Morse", "unsure"},
    {IN(rows), "Open 2026-105", "1. press \"Open\" in the row of \"2026-105\""},
    {IN(rows), "Press Open", "unsure"},
    {IN(rows), "Enter Main into street", "unsure"},
    {IN(rows), "List unpaid invoices", "unsure~unpaid"},
    {IN(rows), "Show only unpaid invoices", "unsure~only"},
    {IN(rows), "Do not open 2026-105", "refused~not"},
    {IN(rows), "Open the second invoice", "unsure~second"},
    {IN(rows), "Open 2026-104 or 2026-105", "refused~or"},
    {IN(rows), "Open every invoice except 2026-104", "refused"},
    {IN(rows), "Open the cheapest invoice", "unsure~cheapest"},
    {IN(rows), "Don't open anything", "refused"},
    {IN(rows), "What is the total?", "refused~question"},
    /* "not" in any case and with either apostrophe */
    {IN(order), "Do NOT order a large shirt", "refused~NOT"},
    {IN(order), "Order a large shirt, Never with gift wrapping", "refused~Never"},
    {IN(editor), "Write hello, don\xe2\x80\x99t save", "refused"},
    {IN(editor), "Write hello, don\xc2\xb4t save", "refused"},
    {IN(editor), "Write hello, DON`T save", "refused"},
    {IN(order), "Press Not now", "unsure"}, /* a name */
    /* verbs that the button does not have */
    {IN(order), "Change the order", "unsure"},
    {IN(order), "Calculate the order", "unsure"},
    {IN(order), "Archive the order of a shirt", "unsure"},
    {IN(order), "Close the gift wrapping", "unsure"},
    {IN(order), "Set gift wrapping to off", "unsure"},
    {IN(order), "Turn on gift wrapping and off sounds", "unsure"},
    {IN(order), "Set the colour quickly to red", "unsure"},
    {IN(order), "Choose Violet", "unsure"},
    {IN(order), "Order it, then fly to the moon", "unsure~fly"},
    {IN(editor), "Save it under a new name", "unsure"},
    {IN(editor), "Insert table", "unsure"},
    {IN(editor), "Close the tab", "unsure"},
    {IN(editor), "Close the editor", "1. close the window"},
    /* quoted words are never steps */
    {IN(editor), "Write \"a\\\", press \\\"File\"", "~1. enter \"a\\\", press \\\"File\""},
    {IN(question), "Discard the order", "unsure"}, /* the question has the verb, no button has it */
    {IN(question), "Cancel", "unsure"},            /* "Discard" is another deed */
    {IN(question), "Book it", "unsure"},           /* "Bookmark" is another word */
    {IN(question), "Order it", "1. press \"Order\""},
    /* capitals beside names, and a word for a button and a line: "cancel the newsletter" */
    {IN(booking), "Book a suite with TV", "unsure~TV"},
    {IN(booking), "Book a suite. Cheers", "unsure"},
    {IN(booking), "Book a suite for Monday", "unsure~Monday"},
    {IN(booking), "Book a suite for 4", "unsure"},
    {IN(hotel), "Cancel the newsletter", "unsure"},
    {IN(hotel), "Cancel the single room", "unsure"},
    {IN(booking), "Cancel it", "1. press \"Cancel\""},
    /* buttons that do not end a form */
    {IN(person), "Save as \"old.txt\"", "unsure"}, /* a file, not the person */
    {IN(person), "Save it as old.txt", "unsure"},
    {IN(person), "Save the contact as \"Ana\"", "1. enter \"Ana\" into \"Name\"  2. press \"Save\""},
    {IN(saving), "Save as \"old.txt\"", "1. enter \"old.txt\" into \"Name:\"  2. press key enter"},
    {IN(contact), "The name is Ana", "not sure: 1. enter \"Ana\" into \"Name\""},
    {IN(upload), "The name is Ana", "not sure: 1. enter \"Ana\" into \"Name\""},
    /* questions */
    {IN(booking), "Hi, is breakfast included? Book a suite", "refused~question"},
    {IN(booking), "Should I book a suite?", "refused~question"},
    {IN(booking), "Is there a suite", "refused~question"},
    {IN(booking), "OK, do I book a suite", "refused~question"},
    {IN(booking), "Could you book a suite?", "1. choose \"Suite\" in \"Room\"  2. press \"Book\""},
    /* words that a label, an unchanged value or another kind of button has */
    {IN(hotel), "Book a suite with a sea view", "unsure~sea"},
    {IN(hotel), "Book a suite in Rome", "unsure~Rome"},
    {IN(parcel), "Buy it insured", "unsure~Buy"},
    {IN(paper), "Turn off landscape, then print", "unsure"},
    {IN(hotel), "Turn off television and newsletter, then book a suite", "unsure"},
    {IN(hotel), "They said it is quiet, book a suite", "unsure"},
    {IN(parcel), "The ship city is Rome", "1. enter \"Rome\" into \"Ship: city\"  2. press \"OK\""},
    /* negations with marks */
    {IN(order), "Order a large shirt (not with gift wrapping)", "refused~not"},
    {IN(order), "Order a large shirt \xe2\x80\x94not with gift wrapping", "refused~not"},
    {IN(booking), "Book a suite/non-suite", "unsure"},
    /* names that deny or do more than the task asks for */
    {IN(unsaved), "Save it", "unsure"},
    {IN(unsaved), "Save the changes", "unsure"},
    {IN(unsaved), "Save, then close", "unsure"},
    {IN(unsaved), "Quit", "unsure"},
    {IN(closing), "Save the text", "unsure"},
    {IN(closing), "Close it", "unsure"},
    {IN(publish), "Save it", "unsure"},
    {IN(leaving), "Quit", "unsure"},
    {IN(leaving), "Exit the program", "unsure"},
    {IN(wrapping), "Order it with wrapping", "1. press \"Order with wrapping\""},
    {IN(opening), "Open with", "1. press \"Open with\""},
    {IN(session), "Log in", "unsure"},
    {IN(session), "Log me out", "1. press \"Log out\""},
    /* "cancel" and "help" with another command */
    {IN(account), "Cancel my account", "unsure"},
    {IN(shop), "Cancel the invoice", "unsure"},
    {IN(shop), "Cancel my address", "unsure"},
    {IN(shirt), "Help me order a shirt", "unsure"},
    {IN(shirt), "Help me to order", "unsure"},
    {IN(shirt), "Cancel, I want to order", "unsure"},
    {IN(shirt), "Cancel the shirt", "unsure"},
    {IN(shirt), "Cancel the order", "1. press \"Cancel\""},
    {IN(paying), "Pay it back", "unsure"},
    {IN(paying), "Give my payment back", "unsure"},
    {IN(paying), "Go back", "1. press \"Back\""},
    {IN(booking), "Back out of the book", "unsure"},
    /* a word of the title is not the window */
    {IN(account), "Close my account", "unsure"},
    {IN(shirt), "Close the order", "unsure"},
    {IN(shirt), "Close the order window", "1. close the window"},
    {IN(message), "Close the message", "unsure"},
    {IN(notice), "Close this message", "1. press \"OK\""},
    /* words after a value, and a recipient */
    {IN(message), "Write Ana a message", "not sure: 1. enter \"Ana a message\" into \"Text\""},
    {IN(message), "Write Ana in the text field", "1. enter \"Ana\" into \"Text\"  2. press \"OK\""},
    {IN(mail), "Send a message to Ana", "unsure"},
    {IN(editor), "Turn off word wrap. Thanks", "1. open menu \"View\" > \"Word Wrap\""},
    /* "leave it" asks for no change */
    {IN(meeting), "Leave it", "unsure"},
    {IN(meeting), "Leave them as they are", "unsure"},
    {IN(meeting), "Leave everything as it is", "unsure"},
    {IN(meeting), "Leave", "1. press \"Leave\""},
    {IN(meeting), "Leave the meeting", "1. press \"Leave\""},
    {IN(order), "Make it large and leave the rest as it is", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "Leave the size large", "unsure"},
    /* wishes are ordered, statements are not */
    {IN(booking), "I would like a suite", "1. choose \"Suite\" in \"Room\"  2. press \"Book\""},
    {IN(booking), "I have a suite", "not sure: 1. choose \"Suite\" in \"Room\""},
    {IN(order), "I have a large shirt", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "I like large shirts", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "My order was large", "unsure"},
    {IN(order), "I want help with the order", "unsure"},
    {IN(order), "I would like to return a large shirt", "unsure"},
    {IN(order), "Never mind the shirt, order it", "unsure"},
    {IN(order), "Never mind the shirt, cancel it", "1. press \"Cancel\""},
    {IN(booking), "Make the reservation for Hanna Vogel",
     "1. enter \"Hanna Vogel\" into \"Guest\"  2. press \"Book\""},
    {IN(booking), "Book a suite for three nights",
     "1. choose \"Suite\" in \"Room\"  2. enter \"3\" into \"Nights\"  3. press \"Book\""},
    {IN(booking), "Add Sparkling Water to the booking", "unsure"},
    {IN(booking), "Take it, then cancel", "unsure"},
    {IN(people), "Add Karl Otto Brandt to my friends",
     "1. enter \"Karl Otto\" into \"First name\"  2. enter \"Brandt\" into \"Last name\"  3. press \"OK\""},
    {IN(people), "Reset everything", "1. press \"Reset\""},
    {IN(people), "Delete everything", "unsure"},
    /* a form in a page, and a button that has the verb in other words */
    {IN(page), "Sign up Dana Petit", "1. enter \"Dana Petit\" into \"Full name\"  2. press \"Join\""},
    {IN(page), "Full name is Dana Petit", "not sure: 1. enter \"Dana Petit\" into \"Full name\""},
    {IN(page), "Reload it", "unsure"},
    {IN(page), "Send it to Dana Petit", "unsure"},
    {IN(pair), "Abort", "unsure"},
    {IN(pair), "Cancel", "1. press \"Cancel\""},
    {IN(draft), "The name is Ana", "not sure: 1. enter \"Ana\" into \"Name\""},
    /* statements, verbs that are names, and words that begin no text */
    {IN(booking), "I have booked a suite", "unsure"},
    {IN(booking), "The suite is booked", "unsure"},
    {IN(booking), "Mail ana@lima.pt", "unsure"},
    {IN(hotel), "The newsletter is great", "unsure"},
    {IN(message), "Write the text down", "unsure"},
    {IN(parcel), "The street of the ship city is Rome", "unsure"},
    {IN(rows), "Fly to 2026-104", "unsure"},
    {IN(keys), "Add 4", "unsure"},
    {IN(editor), "Write to Ana", "unsure"},
    {IN(editor), "Write it again", "unsure"},
    {IN(editor), "Put the file away", "unsure"},
    {IN(editor), "Save as PDF", "unsure"},
    {IN(editor), "Write hello into a.txt",
     "1. enter \"hello\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: Write hello into "
     "a.txt"},
    /* colours without the name of a field */
    {IN(order), "Order it in dark green", "unsure"},
    {IN(order), "Order it in green", "1. enter \"green\" into \"Colour\"  2. press \"Order\""},
    {IN(order), "Order the green wrapping", "unsure"},
    /* texts and files */
    {IN(editor), "Put \"milk\" into a file list.txt",
     "1. enter \"milk\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: Put "
     "\"milk\" into a file list.txt"},
    {IN(editor), "I need a file named a.txt that says Good evening",
     "1. enter \"Good evening\"  2. open menu \"File\" > \"Save As...\"  then, in the window that opens: a file "
     "named a.txt that says Good evening"},
    {IN(editor), "Add \"hello\" at the start", "1. press key ctrl+home  2. enter \"hello\""},
    {IN(editor), "Delete all the text", "1. press key ctrl+a  2. press key delete"},
    {IN(editor), "Name it \"Old things\"", "unsure"},
    {IN(message), "Write \"Carla Dias\" as the name and confirm", "unsure"},
    {IN(people), "I want the program in Spanish", "unsure"},
    {IN(meeting), "Exit please", "unsure"},
    {IN(message), "Name it \"Old things\"", "unsure"},
    {IN(contact), "Call her Ana Lima", "not sure: 1. enter \"Ana Lima\" into \"Name\""},
    {IN(editor), "Enter 52 as the age", "unsure"},
    {IN(editor), "Close the calculator", "unsure"},
    {IN(booking), "Close the editor", "unsure"},
    {IN(booking), "Close the file manager", "unsure"},
    {IN(booking), "Quit the calculator", "unsure"},
    {IN(editor), "Delete the document", "unsure"},
    {IN(editor), "Delete all files", "unsure"},
    {IN(editor), "Open letter.txt", "unsure"},
    {IN(editor), "Save letter.txt", "unsure"},
    {IN(editor), "Copy letter.txt", "unsure"},
    {IN(editor), "Create letter.txt", "unsure"},
    {IN(editor), "Attach the file letter.txt", "unsure"},
    {IN(editor), "Save it as letter.txt and mail it to Ana", "unsure"},
    {IN(editor), "What is 2 plus 3?", "unsure"},
    {IN(keys), "What is 2 plus the price?", "refused~question"},
    /* numbers, times and dates in words */
    {IN(stay), "Two people, three nights, and we'd love to have breakfast",
     "1. enter \"2\" into \"Guests\"  2. enter \"3\" into \"Nights\"  3. tick \"Breakfast\"  4. press \"Reserve\""},
    {IN(stay), "Reserve a hundred and five nights", "1. enter \"105\" into \"Nights\"  2. press \"Reserve\""},
    {IN(stay), "Two nights ago we had breakfast", "unsure"},
    {IN(stay), "We are two, not three", "refused"},
    {IN(stay), "We need two or three nights", "refused"},
    {IN(stay), "three nights and a dog", "unsure~dog"},
    {IN(stay), "I was here three nights", "unsure"},
    {IN(stay), "Reserve three more nights", "unsure"},
    {IN(stay), "breakfast with a view", "unsure"},
    {IN(delivery), "have it brought to 8 Mill Lane on the 2nd of March 2026",
     "1. enter \"8 Mill Lane\" into \"Address\"  2. enter \"02.03.2026\" into \"Day\"  3. press \"Schedule\""},
    {IN(delivery), "have it brought on October 31st",
     "1. enter \"31.10.2026\" into \"Day\"  2. press \"Schedule\""},
    {IN(delivery), "have it brought on the 31st of February 2026", "unsure"},
    {IN(delivery), "have it brought before 2 March 2026", "unsure~before"},
    {IN(delivery), "not on 2 March 2026", "refused"},
    {IN(delivery), "It weighs two and a half kilos, schedule it",
     "1. enter \"2.5\" into \"Weight (kg)\"  2. press \"Schedule\""},
    {IN(delivery), "It weighs two and a half pounds, schedule it", "unsure~pounds"},
    {IN(flights), "put me on the departure at twenty to ten", "1. choose \"LH 204\"  2. press \"Join\""},
    {IN(flights), "the departure at twenty past ten", "unsure"},
    {IN(flights), "I was on LH 201", "unsure"},
    {IN(flights), "I was on LH 201, put me on LH 204", "unsure"},
    {IN(flights), "put me on LH 210", "unsure"},
    /* negations of one thing, and statements beside the task */
    {IN(profile), "My email has changed to kim@new.example, and I don't want the newsletter any longer",
     "1. enter \"kim@new.example\" into \"Email\"  2. untick \"Newsletter\"  3. press \"Save profile\""},
    {IN(profile), "Turn the newsletter off but leave the wifi calls as they are",
     "1. untick \"Newsletter\"  2. press \"Save profile\""},
    {IN(profile), "They don't need my phone number, take the newsletter off",
     "1. untick \"Newsletter\"  2. press \"Save profile\""},
    {IN(profile), "I don't want to lose the newsletter", "unsure"},
    {IN(profile), "I don't mind the newsletter", "unsure"},
    {IN(profile), "I can't live without the newsletter", "refused"},
    {IN(profile), "The newsletter is not bad", "unsure"},
    {IN(profile), "My email is not kim@new.example", "unsure"},
    {IN(profile), "My email has not changed", "unsure"},
    {IN(profile), "I don't want you to save it", "unsure"},
    {IN(profile), "Don't save the newsletter", "refused"},
    {IN(profile), "not the newsletter", "refused"},
    {IN(ticket), "I talked to my boss, so hand it to Farid",
     "1. enter \"Farid\" into \"Assigned to\"  2. press \"Update\""},
    {IN(ticket), "write to Farid", "unsure"},
    {IN(ticket), "it's about the printer, make it urgent", "unsure"},
    {IN(ticket), "I broke the printer, so make it urgent", "unsure"}, /* the empty field */
    {IN(ticket), "It was assigned to Farid", "unsure"},
    {IN(ticket), "Hand it to Farid but only if he is in", "refused"},
    {IN(ticket), "I have to talk to my boss first, so hand it to Farid", "unsure"},
    {IN(ticket), "please do not update it yet, I have to talk to my boss", "refused"},
    {IN(ticket), "They say it is urgent, update it", "unsure"},
    /* consent, questions, and a password */
    {IN(consent), "I agree, go on", "1. tick \"I have read the rules and agree\"  2. press \"OK\""},
    {IN(consent), "They agree", "unsure"},
    {IN(consent), "I do not agree", "unsure"},
    {IN(consent), "I agree with the first rule", "unsure"},
    {IN(enrol), "yes, sign me up for that course", "1. press \"Enrol\""},
    {IN(enrol), "yes, but later", "unsure"},
    {IN(enrol), "I signed up yesterday", "unsure"},
    {IN(enrol), "sign me out", "unsure"},
    {IN(secret), "the passphrase is tulip-9, unlock it please",
     "1. enter \"tulip-9\" into \"Password:\"  2. press \"OK\""},
    {IN(secret), "the passphrase is not tulip-9", "unsure"},
    {IN(secret), "my user name is jonas and my password tulip-9", "unsure"},
    {IN(secret), "put 10 Downing Street in the street field", "unsure"},
    {IN(secret), "lock it, the passphrase is tulip-9", "unsure"},
    {IN(enrol), "not now", "1. press \"Not now\""},
    {IN(enrol), "no, enrol me", "unsure"},
    {IN(profile), "I have a new email, it's kim@new.example",
     "1. enter \"kim@new.example\" into \"Email\"  2. press \"Save profile\""},
    {IN(profile), "unsubscribe me from the newsletter but keep the wifi calls",
     "1. untick \"Newsletter\"  2. press \"Save profile\""},
    {IN(stay), "there are four of us, reserve it", "1. enter \"4\" into \"Guests\"  2. press \"Reserve\""},
    {IN(secret), "the password is tulip!", "unsure~sign"},
    {IN(message), "Help", "unsure"},
    {IN(message), "Bye", "unsure"},
    {IN(phones), "her phone number has changed to 555 0182, please save that", "unsure"},
    {IN(phones), "her work phone number has changed to 555 0182, please save that",
     "1. enter \"555 0182\" into \"Phone (work)\"  2. press \"Save\""},
    /* wishes without a verb */
    {IN(paper), "I voted for portrait", "unsure"},
    {IN(order), "large", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(order), "too large", "not sure: 1. choose \"Large\" in \"Size\""},
    {IN(booking), "a suite for Hanna Vogel please", /* the email is missing */
     "not sure: 1. enter \"Hanna Vogel\" into \"Guest\"  2. choose \"Suite\" in \"Room\""},
    {IN(hotel), "a suite please", "1. choose \"Suite\" in \"Room\"  2. press \"Book\""},
    {IN(hotel), "cancelled suite", "unsure"},
    /* lines and folders */
    {IN(editor), "add a last line saying light bulbs", "1. press key ctrl+end  2. enter \"light bulbs\""},
    {IN(editor), "put the line Best regards at the very end & save",
     "1. press key ctrl+end  2. enter \"Best regards\"  3. open menu \"File\" > \"Save\""},
    {IN(editor), "put the line hello before the end", "unsure"},
    {IN(editor), "put the line hello at the end of the mail to Ana", "unsure"},
    {IN(editor), "add a second line saying hi", "unsure"},
    {IN(files), "make me a folder called Receipts in here",
     "1. press key ctrl+shift+n  then, in the window that opens: make me a folder called Receipts in here"},
    {IN(files), "make a folder called A inside B", "unsure"},
    {IN(files), "make a folder called A and delete B", "unsure"},
    {IN(files), "make a folder named after my dog", "unsure"},
    {IN(files), "I made a folder called A", "unsure"},
    {IN(booking), "make me a folder called Receipts", "unsure"},
    /* sums in other words */
    {IN(keys), "How much are 2 at 4 each and one at 2?", "refused"},
    {IN(keys), "What is half of 4 and 2 together?", "refused"},
};

static void t_plans(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = plan_window(cases[i].window);
        char *got = plan_text(&s, cases[i].task, false);
        const char *tilde = strchr(cases[i].plan, '~');
        size_t begins = tilde ? (size_t)(tilde - cases[i].plan) : strlen(cases[i].plan);
        bool refused = !strncmp(cases[i].plan, "unsure", 6) || !strncmp(cases[i].plan, "refused", 7);
        bool right = !strncmp(got, cases[i].plan, begins) && (tilde || refused || strlen(got) == begins) &&
                     (!tilde || strstr(got, tilde + 1));
        if (!right)
            print_message("%s\n  %s\n  expected %s\n", cases[i].task, got, cases[i].plan);
        wrong += !right;
        free(got);
    }
    assert_int_equal(wrong, 0);
}

static void t_inverse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = plan_window(cases[i].window);
        struct planner *p = planner_open(cases[i].task, NULL, NULL);
        struct plan plan = {0};
        if (p)
            planner_next(p, &s, PLAN_PROPOSAL, &plan);
        for (int k = 0; k < plan.steps.n; k++) {
            struct plain_steps again;
            struct buf a, b;
            buf_init(&a, 1 << 16);
            buf_init(&b, 1 << 16);
            plain_print(&plan.steps.s[k], &a);
            assert_int_equal(plain_parse(a.data, &again, NULL), 0);
            assert_int_equal(again.n, 1);
            plain_print(&again.s[0], &b);
            assert_string_equal(a.data, b.data);
            plain_free(&again);
            buf_free(&a);
            buf_free(&b);
        }
        plan_free(&plan);
        planner_free(p);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a sentence becomes the steps of its window, or is refused before any of them", t_plans),
    CLAIM("each step is printed and parsed as the same step", t_inverse),
};
CHECK_MAIN()
