// SPDX-License-Identifier: Apache-2.0

// Package openai asks a language model for variants, over the HTTP interface that most servers of models speak: POST
// /chat/completions, with one answer and no stream.
//
// The model is shown the task, the scores, the surface, what the tests of the accepted tree print, and what became of the
// last variants and why. It answers with search/replace blocks, which package allowlist parses against the very text that
// was shown. What is not in a block is dropped, since models like to explain; what is in one is judged like any edit.
//
// # What the other side can do
//
// It is not trusted. An answer has a largest size and a largest time; a redirect is refused, no proxy is taken from the
// environment, and the key goes over TLS or to this machine alone. A busy server is asked again as often as the Config
// says, after the time that it names, if that is not too long. Tokens are charged as the server reports them, and by the
// number of bytes if it reports nothing.
//
// # Errors
//
// ErrConfig: New refuses. ErrRefused: the model will not. ErrAnswer: what came is no answer. ErrTruncated: it is not all
// of it. ErrTooLarge, ErrTimeout, ErrBusy: as they say. ErrStatus: any other status. A *allowlist.DeniedError: the blocks
// do not fit the surface.
//
// # What it does not do
//
// It keeps no conversation, calls no tools, and knows no prices: the cost of a call is not reported. A file that was
// written by a hostile variant, or a test that prints, can talk to the model; all that this leads to is another edit that
// is judged.
package openai
