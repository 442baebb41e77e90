// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/evoseal/containment/runaway"
)

// The sentinels of this package.
var (
	ErrConfig    = errors.New("openai: configuration refused")
	ErrRefused   = errors.New("openai: the model refuses")
	ErrAnswer    = errors.New("openai: no usable answer")
	ErrTruncated = errors.New("openai: the answer is cut off")
	ErrTooLarge  = errors.New("openai: too large")
	ErrTimeout   = errors.New("openai: no answer in time")
	ErrBusy      = errors.New("openai: the server is busy")
	ErrStatus    = errors.New("openai: the server answers with an error")
)

// Config says whom to ask. URL and Model are needed; every other zero field takes its default.
type Config struct {
	URL   string // of the interface, such as http://127.0.0.1:11434/v1
	Model string
	Key   string // sent as a bearer token; "" sends none

	Timeout   time.Duration // of one request and its answer; default 2 min
	MaxAnswer int64         // bytes of one answer; default 1 MiB
	MaxPrompt int           // bytes of what is sent; default 256 KiB
	MaxTokens int           // of one answer, which the server is asked to obey; default 8192
	Retries   int           // further requests to a server that is busy; default 3; negative: none
	MaxWait   time.Duration // the longest time that a busy server may ask for; default 1 min
}

func (c Config) withDefaults() Config {
	set := func(p *time.Duration, d time.Duration) {
		if *p <= 0 {
			*p = d
		}
	}
	set(&c.Timeout, 2*time.Minute)
	set(&c.MaxWait, time.Minute)
	if c.MaxAnswer <= 0 {
		c.MaxAnswer = 1 << 20
	}
	if c.MaxPrompt <= 0 {
		c.MaxPrompt = 256 << 10
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = 8192
	}
	if c.Retries == 0 {
		c.Retries = 3
	}
	return c
}

// endpoint checks the configuration and returns the address that is asked.
func (c Config) endpoint() (string, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: URL: %w", ErrConfig, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", fmt.Errorf("%w: URL %q: it must begin with http:// or https:// and name a host", ErrConfig, u.Redacted())
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%w: URL %q: no user, query or fragment; a key belongs into Key", ErrConfig, u.Redacted())
	case c.Model == "":
		return "", fmt.Errorf("%w: Model is missing", ErrConfig)
	case c.Key != "" && u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("%w: URL %q: a key goes over https, or to this machine alone", ErrConfig, u.Redacted())
	case strings.ContainsAny(c.Key, "\r\n\x00"):
		return "", fmt.Errorf("%w: Key holds a character that no header can", ErrConfig)
	}
	return u.JoinPath("chat/completions").String(), nil
}

// loopback does not ask a resolver: what localhost means may be somebody else's business, what 127.0.0.1 means is not.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// newClient makes a client that goes nowhere else than it is told.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // none from the environment
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns:           2,
			IdleConnTimeout:        time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	N         int       `json:"n"`
	Stream    bool      `json:"stream"`
}

type response struct {
	Choices []struct {
		Message struct {
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
	} `json:"usage"`
}

// ask sends the messages and returns the text of the answer. The usage counts also if there is an error.
func (g *Generator) ask(ctx context.Context, messages []message) (text string, spent runaway.Usage, err error) {
	body, err := json.Marshal(request{Model: g.config.Model, Messages: messages, MaxTokens: g.config.MaxTokens, N: 1})
	if err != nil {
		return "", spent, err
	}
	if len(body) > g.config.MaxPrompt {
		return "", spent, fmt.Errorf("%w: the prompt has %d bytes, MaxPrompt is %d; narrow the surface", ErrTooLarge, len(body),
			g.config.MaxPrompt)
	}
	for try := 0; ; try++ {
		answer, wait, err := g.post(ctx, body)
		spent.Calls++
		if errors.Is(err, ErrBusy) && try < g.config.Retries && wait <= g.config.MaxWait {
			if wait == 0 {
				wait = min(time.Second<<try, g.config.MaxWait)
			}
			if err := sleep(ctx, wait); err != nil {
				return "", spent, err
			}
			continue
		}
		if err != nil {
			if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrStatus) {
				spent.Tokens += estimate(len(body)) // it was read by the other side, as far as we know
			}
			if errors.Is(err, ErrTooLarge) {
				spent.Tokens += estimate(int(g.config.MaxAnswer)) // and so much was written
			}
			return "", spent, err
		}
		text, tokens, err := g.read(answer, len(body))
		spent.Tokens += tokens
		return text, spent, err
	}
}

// post makes one request. wait is what a busy server asks for; 0: it does not say.
func (g *Generator) post(ctx context.Context, body []byte) (answer []byte, wait time.Duration, err error) {
	timed, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(timed, http.MethodPost, g.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if g.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+g.config.Key)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, 0, g.transport(ctx, timed, err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, g.config.MaxAnswer+1))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 502 && resp.StatusCode <= 504:
		return nil, retryAfter(resp.Header.Get("Retry-After"), time.Now()), fmt.Errorf("%w: %s", ErrBusy, resp.Status)
	case resp.StatusCode != http.StatusOK:
		// The text of the answer is the server's and may be anything, so no more than a part of it is quoted.
		return nil, 0, fmt.Errorf("%w: %q: %.200q", ErrStatus, resp.Status, answer)
	case int64(len(answer)) > g.config.MaxAnswer:
		return nil, 0, fmt.Errorf("%w: the answer has more than %d bytes", ErrTooLarge, g.config.MaxAnswer)
	case err != nil && timed.Err() != nil:
		return nil, 0, g.transport(ctx, timed, err)
	case err != nil:
		return nil, 0, fmt.Errorf("%w: after %d bytes: %w", ErrTruncated, len(answer), err)
	}
	return answer, 0, nil
}

// transport tells the end of the caller's context from the end of our patience.
func (g *Generator) transport(ctx, timed context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case timed.Err() != nil:
		return fmt.Errorf("%w: %v", ErrTimeout, g.config.Timeout)
	}
	return fmt.Errorf("%w: %w", ErrAnswer, err)
}

// retryAfter reads seconds or a date. What cannot be read says nothing.
func retryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
