// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"fmt"

	"github.com/evoseal/containment/isolation"
)

// A person declares what is believed about a run, and the rules say what follows.
func ExampleDecide() {
	m := isolation.TrustModel{
		Generator:           isolation.TrustedProvider,
		Host:                isolation.SingleOperator,
		ExternalSideEffects: isolation.No,
		UntrustedInput:      isolation.No,
		Secrets:             isolation.LowValue,
		Unattended:          isolation.Yes,
		DeclaredBy:          "A. Person",
	}
	fmt.Println(isolation.Decide(m).Required)

	// The generator is switched to a model on this machine, and the declaration stays as it is.
	seen := isolation.Observed{
		Generator: isolation.Local, Host: isolation.SingleOperator, ExternalSideEffects: isolation.No,
		Secrets: isolation.NoSecrets,
	}
	d := isolation.Decide(m.Merge(seen))
	fmt.Println(d.Required, d.Approval)
	for _, f := range d.Fired {
		fmt.Printf("%v: %v is %s\n", f.Trigger, f.Fact, f.Value)
	}
	// Output:
	// guarded
	// container true
	// untrusted-generation: generator is local
	// contradiction: generator is local
}

// What is unknown asks for the most.
func ExampleDecide_zero() {
	d := isolation.Decide(isolation.TrustModel{})
	fmt.Println(d.Required, d.Advised, d.Approval)
	// Output: container kernel true
}

// The host says where to look. A model next door is no provider's, whatever the declaration says.
func ExampleObserve() {
	s := isolation.HostSources("/home/loop", []string{"PATH=/bin", "GITHUB_TOKEN=…"})
	s.Generator = isolation.GeneratorIdentity{Endpoint: "http://gpu.lan:11434", Model: "coder-7b"}
	s.Proc = "" // nobody looks who else is here

	o := isolation.Observe(context.Background(), s)
	fmt.Println(o.Generator, o.Host)
	fmt.Println(o.Evidence[isolation.FactGenerator])
	// Output:
	// local unknown
	// endpoint "gpu.lan" is on this machine or next to it
}
