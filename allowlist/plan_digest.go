// SPDX-License-Identifier: Apache-2.0

package allowlist

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"log/slog"
)

// hasher digests a sequence of fields. Each has its length in front, so no two sequences look alike.
type hasher struct{ hash.Hash }

func newHasher(domain string) hasher {
	h := hasher{sha256.New()}
	h.field([]byte("github.com/evoseal/containment/allowlist " + domain))
	return h
}

func (h hasher) field(b []byte) {
	h.number(uint64(len(b)))
	h.Write(b)
}

func (h hasher) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

func (h hasher) digest() string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func planDigest(policy string, changes []change) string {
	h := newHasher("plan v1")
	h.field([]byte(policy))
	h.number(uint64(len(changes)))
	for _, c := range changes {
		content := Sum(c.Content)
		h.field([]byte{byte(c.Op)})
		h.field([]byte(c.Path))
		h.field(c.Base[:])
		h.field(content[:])
	}
	return h.digest()
}

// audit writes one record for each decision.
func (pl *Plan) audit(ctx context.Context) {
	for _, d := range pl.decisions {
		pl.tree.auditDecision(ctx, d, pl.policy.digest, pl.digest)
	}
}

func (t *Tree) auditSet(set []Decision, policy, plan string) {
	for _, d := range set {
		t.auditDecision(context.Background(), d, policy, plan)
	}
}

// auditDecision logs the path quoted: a name can hold anything, and a log is read on terminals.
func (t *Tree) auditDecision(ctx context.Context, d Decision, policy, plan string) {
	level := slog.LevelInfo
	if !d.Allowed {
		level = slog.LevelWarn
	}
	t.log.LogAttrs(ctx, level, "allowlist: decision",
		slog.String("path", fmt.Sprintf("%+q", d.Path)), slog.String("op", d.Op.String()),
		slog.Bool("allowed", d.Allowed), slog.String("code", string(d.Code)),
		slog.String("rule", d.Rule.Pattern), slog.String("source", d.Rule.Source),
		slog.String("detail", d.Detail), slog.String("policy", policy), slog.String("plan", plan))
}
