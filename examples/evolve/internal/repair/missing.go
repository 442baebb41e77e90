// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"go/ast"
	"go/types"
	"strings"
)

const (
	isInteger = types.IsInteger
	isBoolean = types.IsBoolean
)

// checkError adds a check behind an assignment to err that none follows, and where an error is thrown away.
func (c *collector) checkError(s, next ast.Stmt) {
	if e, ok := s.(*ast.ExprStmt); ok {
		if values, ok := c.results("err"); ok && values != "" {
			c.replace(s, "if err := "+c.text(e)+"; err != nil {\nreturn "+values+"\n}", "missing check", occasional)
		}
		return
	}
	a, ok := s.(*ast.AssignStmt)
	if !ok {
		return
	}
	id, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	if !ok {
		return
	}
	name, cost := id.Name, plausible
	switch {
	case name == "_":
		name, cost = "err", occasional
	case !strings.HasPrefix(strings.ToLower(name), "err"):
		return
	}
	if f, ok := next.(*ast.IfStmt); ok && strings.Contains(c.text(f.Cond), name) {
		return
	}
	if values, ok := c.results(name); ok {
		rest := string(c.f.src[c.offset(id.End()):c.offset(s.End())])
		c.add(id.Pos(), s.End(), name+rest+"\nif "+name+" != nil {\nreturn "+values+"\n}", "missing check", cost)
	}
}

// leave ends a branch that goes on where it should not.
func (c *collector) leave(f *ast.IfStmt) {
	n := len(f.Body.List)
	if n > 0 {
		switch s := f.Body.List[n-1].(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			return
		case *ast.ExprStmt:
			if strings.HasPrefix(c.text(s), "panic(") {
				return
			}
		}
	}
	at := f.Body.Rbrace
	name := "nil"
	if c.visible("err", at) != nil {
		name = "err"
	}
	if values, ok := c.results(name); ok {
		c.add(at, at, "\nreturn "+values+"\n", "missing return", rare)
	}
	if c.inLoop() {
		c.add(at, at, "\ncontinue\n", "missing branch", rare)
		c.add(at, at, "\nbreak\n", "missing branch", rare)
	}
}

// function adds a guard against nothing at the beginning.
func (c *collector) function(t *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || t.Params == nil {
		return
	}
	at := body.Lbrace + 1
	for _, field := range t.Params.List {
		for _, name := range field.Names {
			var test string
			switch x := field.Type.(type) {
			case *ast.StarExpr, *ast.FuncType, *ast.InterfaceType:
				test = name.Name + " == nil"
			case *ast.ArrayType, *ast.MapType:
				test = "len(" + name.Name + ") == 0"
			case *ast.Ident:
				switch x.Name {
				case "string":
					test = "len(" + name.Name + ") == 0"
				case "int", "int64", "int32", "uint", "uint64", "float64":
					test = name.Name + " == 0"
				}
			}
			if values, ok := zeros(c, t, "nil"); ok && test != "" && name.Name != "_" {
				c.add(at, at, "\nif "+test+" {\nreturn "+values+"\n}\n", "missing guard", exotic)
			}
		}
	}
}

// results are the values of a return statement of the function that is visited.
func (c *collector) results(err string) (string, bool) {
	t := c.signature()
	if t == nil {
		return "", false
	}
	return zeros(c, t, err)
}

// zeros lists zero values, with the last one replaced where it is an error. It fails where an error has no place.
func zeros(c *collector, t *ast.FuncType, err string) (string, bool) {
	if t.Results == nil {
		return "", true
	}
	var values []string
	lastIsError := false
	for _, field := range t.Results.List {
		for range max(1, len(field.Names)) {
			value := "*new(" + c.text(field.Type) + ")"
			lastIsError = false
			switch x := field.Type.(type) {
			case *ast.StarExpr, *ast.MapType, *ast.FuncType, *ast.InterfaceType, *ast.ChanType:
				value = "nil"
			case *ast.ArrayType:
				if x.Len == nil {
					value = "nil"
				}
			case *ast.Ident:
				switch x.Name {
				case "error":
					value, lastIsError = err, true
				case "string":
					value = `""`
				case "bool":
					value = "false"
				case "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "byte", "rune",
					"float32", "float64", "uintptr":
					value = "0"
				}
			}
			values = append(values, value)
		}
	}
	if err != "nil" && !lastIsError {
		return "", false
	}
	return strings.Join(values, ", "), true
}
