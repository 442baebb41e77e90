// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoseal/containment/executor"
)

// JUnit reads a report in the XML dialect that JUnit's Ant task began and most runners write, taken from the run as an
// artifact. It keeps a variant under the same conditions as [GoTest].
//
// The report must be written by the run: File must not be in the tree, or yesterday's report could pass for today's.
type JUnit struct {
	File     string // path in the workspace, slash-separated, such as "report.xml"
	MinTests int    // 0: as many as pass in the accepted tree
}

// Needs asks for the file.
func (j JUnit) Needs() JudgeNeeds { return JudgeNeeds{Artifacts: []string{j.File}} }

// Judge compares the report with the baseline.
func (j JUnit) Judge(ctx context.Context, e Evaluation) (Ruling, error) {
	return judgeReport(ctx, e, j.MinTests, j.read)
}

// Measure takes the baseline.
func (j JUnit) Measure(ctx context.Context, e Evaluation) (*Baseline, error) {
	return measureReport(ctx, e, j.MinTests, j.read)
}

func (j JUnit) read(e Evaluation, r *report) {
	data, kind, err := j.file(e)
	if err != nil {
		r.find(kind, "", "%q: %v", j.File, err)
		return
	}
	if err := readJUnit(data, r); err != nil {
		r.find(FindingMalformed, "", "%q: %v", j.File, err)
	}
}

// file reads the artifact that the host has recorded, and nothing else in its place.
func (j JUnit) file(e Evaluation) ([]byte, FindingKind, error) {
	if !filepath.IsLocal(filepath.FromSlash(j.File)) || strings.Contains(j.File, "\\") {
		return nil, FindingNoReport, errors.New("it is no path below the workspace; correct JUnit.File")
	}
	var taken []executor.Artifact
	if e.Result != nil {
		for _, a := range e.Result.Artifacts {
			if a.Path == j.File {
				taken = append(taken, a)
			}
		}
	}
	if len(taken) != 1 || e.Artifacts == "" {
		return nil, FindingNoReport, errors.New("the run left no such file")
	}
	if taken[0].Size > MaxReport {
		return nil, FindingTooLarge, fmt.Errorf("%d bytes; at most %d", taken[0].Size, MaxReport)
	}
	f, err := os.OpenInRoot(e.Artifacts, filepath.FromSlash(j.File))
	if err != nil {
		return nil, FindingNoReport, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxReport+1))
	if err != nil {
		return nil, FindingNoReport, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != taken[0].SHA256 {
		return nil, FindingForged, errors.New("the file is not the one that the run left")
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, FindingNoReport, errors.New("the file is empty")
	}
	return data, 0, nil
}

// readJUnit goes through the elements. An error means that the file is not such a report.
func readJUnit(data []byte, r *report) error {
	p := junit{r: r}
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			err = p.start(t)
		case xml.EndElement:
			err = p.end()
		case xml.CharData:
			if len(p.open) == 0 && len(bytes.TrimSpace(t)) > 0 {
				err = errors.New("text outside of the report")
			}
		case xml.Directive:
			err = errors.New("a document type, which a report has no use for")
		}
		if err != nil {
			line, _ := d.InputPos()
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if !p.done {
		return errors.New("no element testsuites or testsuite")
	}
	return nil
}
