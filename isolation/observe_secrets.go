// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// seeSecrets looks for credentials within reach. They are not opened, and no value is read.
func seeSecrets(ctx context.Context, s Sources) (g sighting[Secrets]) {
	if len(s.Files) == 0 && len(s.Sockets) == 0 && len(s.EnvNames) == 0 {
		g.fail("it is not said where secrets could be: fill in Sources.Files, Sockets and EnvNames")
		return g
	}
	for _, name := range s.EnvNames {
		name, _, _ = strings.Cut(name, "=") // a whole entry of an environment must not get into a log
		if secretName(name) {
			g.sign(HighValue, "variable %s is named like a secret", name)
		}
	}
	seePlaces(ctx, &g, "credentials", s.Files)
	seePlaces(ctx, &g, "a socket", s.Sockets)
	return g
}

// withEnv adds what every run is given: a secret among it is within reach, whatever the host's own variables are. It
// only raises, so that a fact that nobody has looked at stays unknown.
func (o Observed) withEnv(env map[string]string) Observed {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !secretName(name) {
			continue
		}
		o.Secrets, _, _ = riskier(o.Secrets, HighValue, secretsRisk)
		o.Evidence = maps.Clone(o.Evidence)
		text := fmt.Sprintf("Run.Env gives every run %.200q, which is named like a secret", name)
		if was := o.Evidence[FactSecrets]; was != "" {
			text += "; " + was
		}
		o.Evidence[FactSecrets] = brief(text)
	}
	return o
}

func seePlaces(ctx context.Context, g *sighting[Secrets], what string, patterns []string) {
	for _, pattern := range patterns {
		if ctx.Err() != nil {
			g.fail("looking for %s was ended: %v", what, context.Cause(ctx))
			return
		}
		switch path, err := exists(pattern); {
		case err != nil:
			g.fail("whether %q exists: %v", pattern, err)
		case path != "":
			g.sign(HighValue, "%q is %s", path, what)
		}
	}
}

// exists returns the first path that matches, "" if there is none. What the kernel keeps from this caller for good is
// not there; every other error is one.
func exists(pattern string) (string, error) {
	if !filepath.IsAbs(pattern) {
		return "", errors.New("not an absolute path")
	}
	dir, last := filepath.Split(pattern)
	if !strings.ContainsAny(last, `*?[`) {
		_, err := os.Stat(pattern)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err = os.Lstat(pattern); err == nil {
				return pattern, nil // a link to what may come back
			}
		}
		if err == nil {
			return pattern, nil
		}
		return "", absent(pattern, err)
	}
	if _, err := filepath.Match(last, ""); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir) // filepath.Glob would take an error for "no match"
	if err != nil {
		return "", absent(dir, err)
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(last, e.Name()); ok && !strings.HasSuffix(e.Name(), ".pub") {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", nil
}

// absent returns nil for the errors that mean that nothing is there for this caller.
func absent(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || outOfReach(path, err) {
		return nil
	}
	return err
}

// secretWords are the words that make a variable's name that of a secret, or of a way to one.
var secretWords = []string{
	"key", "keys", "apikey", "pass", "pwd", "creds", "auth", "authorization", "cookie", "private", "pat", "dsn",
	"kubeconfig", "netrc", "jwt", "bearer", "session", "sas",
}

// secretParts make it one wherever they stand, for names that do not separate their words.
var secretParts = []string{"secret", "token", "password", "passwd", "passphrase", "credential", "apikey", "accesskey",
	"privatekey"}

// harmlessNames are words of the list that every session has in another meaning.
var harmlessNames = []string{"PWD", "OLDPWD", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS",
	"XDG_SESSION_DESKTOP", "DESKTOP_SESSION", "GDMSESSION", "SESSION_MANAGER", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY"}

// secretName reports whether a variable is named like a secret. The value is not known here, and need not be.
func secretName(name string) bool {
	if contains(harmlessNames, name) {
		return false
	}
	lower := strings.ToLower(name)
	for _, part := range secretParts {
		if strings.Contains(lower, part) {
			return true
		}
	}
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	for _, word := range strings.FieldsFunc(lower, notLetter) {
		if contains(secretWords, word) {
			return true
		}
	}
	// The first two hold the password of the account that they name, the others lead to a container engine.
	return strings.HasSuffix(lower, "database_url") || strings.HasSuffix(lower, "_uri") ||
		lower == "docker_host" || lower == "container_host"
}
