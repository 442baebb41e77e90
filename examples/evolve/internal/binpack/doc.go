// SPDX-License-Identifier: Apache-2.0

// Package binpack is the problem that the example works on: items arrive one after the other and must be put into bins
// at once. It makes and reads instances, packs them by the rules that everybody knows, and checks packings that came
// out of a sandbox. It runs nothing that was generated.
//
//	instances := binpack.Weibull.Generate(seed, 5, 5000)
//	fmt.Println(binpack.Excess(instances, binpack.BestFit))
//
// # Errors
//
// Read fails with a *FormatError that names the line; Check with one that matches ErrPacking and names the item.
//
// # What it does not do
//
// A packing says which items share a bin, not how the program came to know: that a rule saw the items one at a time is
// ensured by the program around it, not by Check. The lower bound is the sum of the sizes over the capacity, which the
// optimum may exceed.
package binpack
