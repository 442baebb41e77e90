// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Sources say where [Observe] looks. They are plain data that the host fills in, by hand or with [HostSources]: this
// package reads no environment, no home directory and no default path of its own. What is left out was not looked at,
// and then the fact is unknown.
type Sources struct {
	Generator GeneratorIdentity `json:"generator"`
	OwnModels []string          `json:"ownModels"` // the ids of the models that the program itself has made or chosen

	EnvNames []string `json:"envNames"` // names of the host program's variables; what follows a "=" is not looked at
	Files    []string `json:"files"`    // absolute paths of credentials; the last element may be a filepath.Match pattern
	Sockets  []string `json:"sockets"`  // the same for sockets whose other end can do more than the host program

	Proc    string     `json:"proc"`    // where procfs is, "/proc": who has processes here
	OwnUIDs []UIDRange `json:"ownUIDs"` // what the executors run variants as: nobody, whoever else has processes there

	Egress []string `json:"egress"` // what a variant may reach outside; nil and empty both mean nothing
}

// UIDRange is a row of user ids.
type UIDRange struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// GeneratorIdentity says what writes the variants. A boundary observes again when it has changed.
type GeneratorIdentity struct {
	Endpoint string `json:"endpoint"` // URL, host:port, or the absolute path of a socket
	Address  string `json:"address"`  // the IP address that the endpoint's name stands for; nothing is resolved here
	Provider string `json:"provider"` // such as "anthropic", "ollama"
	Model    string `json:"model"`    // the id that the endpoint is asked for
}

// Observed is what was seen of the facts that can be seen. A field holds the least risk that is compatible with it. The
// zero value is what somebody knows who has not looked: nothing.
type Observed struct {
	Generator           GeneratorTrust  `json:"generator"`
	Host                Host            `json:"host"`
	ExternalSideEffects Answer          `json:"externalSideEffects"`
	Secrets             Secrets         `json:"secrets"`
	Evidence            map[Fact]string `json:"evidence,omitempty"` // what was seen, or why it could not be
}

// observeTime is how long Observe looks. A file system that hangs must not hang the caller.
const observeTime = 3 * time.Second

// Observe looks at what a run is really made of. It can only find risk: for a fact without a sign of it, the least risk
// is reported, which changes no declaration. An error while looking, a source that is left out, and a context that ends
// make a fact unknown. It takes at most 3 s.
func Observe(ctx context.Context, s Sources) Observed {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	o := Observed{ExternalSideEffects: No, Evidence: map[Fact]string{}}
	o.Generator = found(o.Evidence, FactGenerator, TrustedProvider, seeGenerator(s))
	if len(s.Egress) > 0 {
		o.ExternalSideEffects = Yes
		text := fmt.Sprintf("%d destination(s) may be reached: %q", len(s.Egress), s.Egress)
		o.Evidence[FactExternalSideEffects] = brief(text)
	}
	// Both look at file systems, which may hang in a way that nothing can end. The goroutine is left to itself then.
	host, secrets := make(chan sighting[Host], 1), make(chan sighting[Secrets], 1)
	go func() { host <- seeHost(ctx, s) }()
	go func() { secrets <- seeSecrets(ctx, s) }()
	o.Host = found(o.Evidence, FactHost, SingleOperator, await(ctx, host))
	o.Secrets = found(o.Evidence, FactSecrets, NoSecrets, await(ctx, secrets))
	return o
}

// sighting is what was seen of one fact. Without risk and error there was nothing to see.
type sighting[T ~uint8] struct {
	risk   T
	signs  []string // why; never a value of a variable, or a part of an URL that may hold a password
	errors []string
}

func (s *sighting[T]) sign(risk T, format string, args ...any) {
	s.risk = max(s.risk, risk)
	s.signs = append(s.signs, fmt.Sprintf(format, args...))
}

func (s *sighting[T]) fail(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}

// found returns the least risk that a sighting is compatible with, and notes why.
func found[T ~uint8](evidence map[Fact]string, f Fact, least T, s sighting[T]) T {
	if texts := append(s.errors, s.signs...); len(texts) > 0 {
		evidence[f] = brief(strings.Join(texts, "; "))
	}
	switch {
	case len(s.errors) > 0:
		return 0
	case len(s.signs) > 0:
		return s.risk
	}
	return least
}

func await[T ~uint8](ctx context.Context, from <-chan sighting[T]) sighting[T] {
	select {
	case s := <-from:
		return s
	case <-ctx.Done():
	}
	select {
	case s := <-from: // both were ready
		return s
	default:
		var s sighting[T]
		s.fail("looking took too long: %v", context.Cause(ctx))
		return s
	}
}

// brief cuts a text so that a record of it fits into the log, however many signs there are.
func brief(s string) string {
	const most = 600
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + " …"
}
