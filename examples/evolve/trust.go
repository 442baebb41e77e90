// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/user"
	"strconv"

	"github.com/evoseal/containment/examples/internal/executors"
	"github.com/evoseal/containment/executor"
	"github.com/evoseal/containment/isolation"
)

// trust says what is believed about a run, and where the boundary looks whether it is true.
//
// The default run is declared mild, and this is why: its variants are expressions that this program breeds itself, out
// of a closed grammar without calls, loops and names of others; the one function body that the policy lets them change
// stands in a package that imports nothing but math. They are given numbers, and nothing that others wrote. Secrets are
// those that a run could reach, and the sources name what it is given: its environment, which is made from nothing.
//
// With -tree the tests of somebody's project run, and with the other generators strangers write the code. Then the
// sources are those of the whole host: credentials within reach of this program count.
func trust(o *options, spec executor.Spec) (isolation.TrustModel, isolation.Sources) {
	m := isolation.TrustModel{
		Generator: isolation.TrustedProvider, Host: isolation.SingleOperator,
		ExternalSideEffects: isolation.No, UntrustedInput: isolation.No, Secrets: isolation.NoSecrets, Unattended: isolation.No,
		DeclaredBy: operator(), DeclaredAt: o.Started,
		Evidence: map[isolation.Fact]string{
			isolation.FactExternalSideEffects: "executors without network; the outbound list is empty",
			isolation.FactUnattended:          "started by hand; it prints each step",
		},
	}
	if o.Generator == "genetic" {
		m.Evidence[isolation.FactGenerator] = "expressions of a closed grammar, bred by this program"
		m.Evidence[isolation.FactUntrustedInput] = "numbers that this program generated"
		m.Evidence[isolation.FactSecrets] = "a variant can name nothing but its three parameters"
		s := isolation.Sources{Proc: "/proc", EnvNames: names(spec), OwnUIDs: executors.OwnUIDs()}
		s.Generator = identity(o)
		return m, s
	}
	home, _ := os.UserHomeDir() // "": its files are not looked at, which makes nothing milder
	s := isolation.HostSources(home, os.Environ())
	s.Generator, s.OwnUIDs = identity(o), executors.OwnUIDs()
	switch o.Generator {
	case "openai":
		// Whether somebody is a provider to be trusted is for an operator to say, in an override, and not for this program.
		m.Generator = isolation.Local
		m.Evidence[isolation.FactGenerator] = "a model at " + o.URL + ", which nobody has vouched for"
		if o.KeyFile != "" {
			s.Files = append(s.Files, o.KeyFile)
		}
	case "command":
		m.Generator = isolation.GeneratorUnknown // nobody knows what it does; an operator who does can say so in an override
	}
	return m, s
}

// identity names who writes the variants.
func identity(o *options) isolation.GeneratorIdentity {
	switch o.Generator {
	case "openai":
		return isolation.GeneratorIdentity{Endpoint: o.URL, Model: o.Model}
	case "command":
		return isolation.GeneratorIdentity{Provider: "command", Model: o.Command[0]}
	}
	return isolation.GeneratorIdentity{Provider: "examples/evolve", Model: o.Generator}
}

// operator is the user who started the program.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// names are the variables that a run has.
func names(spec executor.Spec) []string {
	var all []string
	for _, entry := range spec.Environ("/home", "/tmp") {
		for i := range entry {
			if entry[i] == '=' {
				all = append(all, entry[:i])
				break
			}
		}
	}
	return all
}
