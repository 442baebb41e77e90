// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"net/netip"
	"net/url"
	"strings"
)

// localProviders are servers that people run themselves, spelt with letters and digits only.
var localProviders = []string{
	"ollama", "llamacpp", "llamacppserver", "llamafile", "vllm", "lmstudio", "localai", "sglang", "koboldcpp",
	"textgenerationwebui", "tgi", "mlx", "mlxlm", "gpt4all", "jan", "exllama", "local", "transformers",
}

// seeGenerator classifies what writes the variants, by what it is called. Nothing is resolved or asked.
func seeGenerator(s Sources) (g sighting[GeneratorTrust]) {
	id := s.Generator
	if id.Endpoint == "" && id.Provider == "" && id.Model == "" {
		g.fail("it is not said what writes the variants: fill in Sources.Generator")
		return g
	}
	seeEndpoint(&g, id)
	if provider := plain(id.Provider); contains(localProviders, provider) {
		g.sign(Local, "provider %q is a server of one's own", id.Provider)
	}
	if model := modelName(id.Model); model != "" {
		for _, own := range s.OwnModels {
			if modelName(own) == model {
				g.sign(SelfTuned, "model %q is one of the program's own", id.Model)
				break
			}
		}
	}
	// OpenAI names fine-tuned models "ft:BASE:ORGANISATION:NAME:ID" (its fine-tuning guide).
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(id.Model)), "ft:") {
		g.sign(SelfTuned, "model %q is fine-tuned", id.Model)
	}
	return g
}

// seeEndpoint looks for an address that is not on the public Internet.
func seeEndpoint(g *sighting[GeneratorTrust], id GeneratorIdentity) {
	if id.Address != "" {
		addr, err := netip.ParseAddr(id.Address)
		switch {
		case err != nil:
			g.fail("address %q is none", id.Address)
		case !public(addr):
			g.sign(Local, "address %v is not public", addr)
		}
	}
	if id.Endpoint == "" {
		// A model's name alone is served by anybody: with neither an address nor a known provider it says nothing.
		if id.Address == "" && (id.Provider == "" || id.Model == "") {
			g.fail("it is not said where the generator is: fill in Sources.Generator.Endpoint, or Provider and Model")
		}
		return
	}
	host, ok := endpointHost(id.Endpoint)
	switch {
	case !ok:
		g.fail("the endpoint is neither a URL, host:port, nor the path of a socket")
	case host == "":
		g.sign(Local, "the endpoint is a socket of this machine")
	case !isPublicName(host):
		g.sign(Local, "endpoint %q is on this machine or next to it", host)
	}
}

// hereSchemes lead to something on this machine.
var hereSchemes = []string{"unix", "file", "npipe", "vsock", "http+unix", "https+unix", "fd", "stdio", "pipe"}

// endpointHost returns the host of an endpoint, "" for a socket or file of this machine.
func endpointHost(endpoint string) (host string, ok bool) {
	if strings.HasPrefix(endpoint, "/") || strings.HasPrefix(endpoint, "@") {
		return "", true
	}
	if scheme, _, _ := strings.Cut(endpoint, ":"); contains(hereSchemes, strings.ToLower(scheme)) {
		return "", true
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "//" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", false
	}
	host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return host, host != ""
}

// localSuffixes are domains that mean a machine next door: RFC 6761, 6762 and 8375, and those that ICANN or custom have
// set aside.
var localSuffixes = []string{
	"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa",
	"test", "example", "invalid", "onion", "docker", "svc", "cluster.local",
}

// isPublicName reports whether a host can only be one of the public Internet. An address in any spelling that a
// resolver takes for one counts, and so does a name that nobody can classify: it is not public.
func isPublicName(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return public(addr)
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	// 127.1, 0x7f.1, 017700000001 and 2130706433 are addresses for inet_aton(3). No top-level domain begins with a digit.
	if len(labels) < 2 || last == "" || last[0] >= '0' && last[0] <= '9' {
		return false
	}
	for _, r := range host {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return false // full-width digits and dots are mapped to others by IDNA
		}
	}
	for _, suffix := range localSuffixes {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return false
		}
	}
	return true
}

// notPublic are the ranges that package netip has no name for, from the registries of IANA for special purposes.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("64:ff9b:1::/48"),
}

// nat64 is the prefix of RFC 6052: the IPv4 address that is meant is in the last 32 bits.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if b := a.As16(); a.Is6() && nat64.Contains(a) {
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// modelName reduces a model id to what stays the same when it is spelt for another server: without vendor, tag and
// case.
func modelName(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if i := strings.LastIndexAny(id, "/\\"); i >= 0 {
		id = id[i+1:]
	}
	return strings.TrimSuffix(strings.TrimSuffix(id, ":latest"), ".gguf")
}

// plain keeps the letters and digits of a name, without case.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}
