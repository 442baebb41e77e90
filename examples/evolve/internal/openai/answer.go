// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxTokens is more than any answer has; a server that reports more is not believed.
const maxTokens = 1 << 40

// estimate is the number of tokens of so many bytes, rather too high.
func estimate(bytes int) int64 { return int64(bytes)/3 + 1 }

// read takes the text and the tokens out of an answer.
func (g *Generator) read(answer []byte, sent int) (text string, tokens int64, err error) {
	tokens = estimate(sent + len(answer))
	var r response
	if err := json.Unmarshal(answer, &r); err != nil {
		return "", tokens, fmt.Errorf("%w: it is no JSON: %w", ErrAnswer, err)
	}
	if u := r.Usage; u != nil {
		if n := max(u.Total, u.Prompt+u.Completion); u.Prompt >= 0 && u.Completion >= 0 && n > 0 && n < maxTokens {
			tokens = n
		}
	}
	if len(r.Choices) == 0 {
		return "", tokens, fmt.Errorf("%w: it has no choice", ErrAnswer)
	}
	c := r.Choices[0]
	switch {
	case c.Message.Refusal != nil && *c.Message.Refusal != "":
		return "", tokens, fmt.Errorf("%w: %.200q", ErrRefused, *c.Message.Refusal)
	case c.FinishReason == "content_filter":
		return "", tokens, fmt.Errorf("%w: its filter does", ErrRefused)
	case c.FinishReason == "length":
		return "", tokens, fmt.Errorf("%w: it has more than %d tokens", ErrTruncated, g.config.MaxTokens)
	case c.Message.Content == nil || strings.TrimSpace(*c.Message.Content) == "":
		return "", tokens, fmt.Errorf("%w: it is empty", ErrAnswer)
	}
	return *c.Message.Content, tokens, nil
}

const (
	fenceSearch  = "<<<<<<< SEARCH"
	fenceReplace = ">>>>>>> REPLACE"
)

// blocks takes the search/replace blocks and their name lines out of what a model says around them. Inside of a block
// nothing is touched: whether it fits is for the parser to say.
func blocks(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if i := strings.LastIndex(text, "</think>"); i >= 0 { // what a model thinks is not what it answers
		text = text[i:]
	}
	var b strings.Builder
	name, inside := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case inside:
			b.WriteString(line + "\n")
			inside = line != fenceReplace
		case line == fenceSearch:
			if name != "" {
				b.WriteString(name + "\n")
				name = ""
			}
			b.WriteString(line + "\n")
			inside = true
		case strings.HasPrefix(line, "```"), strings.TrimSpace(line) == "":
			// A block may stand in a fence of its own, with the name before it.
		default:
			if word := strings.Trim(line, " \t`*#:"); strings.ContainsAny(word, "./") && !strings.Contains(word, " ") {
				name = word // what else stands between blocks is talk
			}
		}
	}
	return b.String()
}
