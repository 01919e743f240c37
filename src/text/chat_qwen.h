/* chat_qwen.h - the chat layout of Qwen3.5 and what is trained from it, Holo 3 and 3.1 among them.
 *
 *   <|im_start|>system\n{sentences <tools>}\n{tool}...{</tools> sentences}\n\n{system}<|im_end|>\n
 *   <|im_start|>user\n{parts}<|im_end|>\n              an image: <|vision_start|> rows <|vision_end|>
 *   <|im_start|>assistant\n<think>\n{reasoning}\n</think>\n\n{text}\n\n{calls}<|im_end|>\n
 *   <|im_start|>user\n<tool_response>\n{result}\n</tool_response>...<|im_end|>\n
 *
 * Every content is cut of white space at both ends.  An assistant's reasoning is kept only after the last
 * question of the user: what was generated is not what a later prompt contains.  A call is XML:
 *
 *   <tool_call>\n<function=NAME>\n<parameter=P>\nVALUE\n</parameter>\n</function>\n</tool_call>
 */
#ifndef HOLORUN_TEXT_CHAT_QWEN_H
#define HOLORUN_TEXT_CHAT_QWEN_H

#include "text/chat_layout.h"

/* Whether a tokenizer has this family's marks of images. */
bool qwen_is_family(const struct tokenizer *t);

/* The text around each turn. */
struct layout_marks qwen_marks(void);

/* The system turn alone, with the JSON of each tool. */
void qwen_system(struct layout *l, const char *text, const char *const *tools, int n_tools,
                 const struct template_traits *h);

/* The whole conversation.  Traits: the sentences around the tools, and how values of calls are spelled. */
int qwen_layout(struct layout *l, const struct chat_conversation *c, const struct template_traits *h,
                struct err *e);

#endif
