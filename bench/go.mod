module github.com/evoseal/containment/bench

// This module is never tagged: it measures from a checkout.
go 1.26.5

require (
	github.com/evoseal/containment v0.0.0
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/sony/gobreaker/v2 v2.4.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/hashicorp/errwrap v1.0.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/evoseal/containment => ../
