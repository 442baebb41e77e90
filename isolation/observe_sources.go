// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"path/filepath"
	"strings"
)

// homeFiles hold credentials, by the documentation of the programs that write them; below a home directory.
var homeFiles = []string{
	".aws/credentials", ".aws/sso/cache/*", ".azure/*", ".config/gcloud", ".oci/config", ".kube/config",
	".ssh/id_*", ".gnupg/private-keys-v1.d/*", ".password-store", ".netrc", ".pgpass", ".vault-token",
	".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml", ".docker/config.json",
	".npmrc", ".pypirc", ".cargo/credentials.toml", ".terraform.d/credentials.tfrc.json",
	".cache/huggingface/token", ".config/op", ".local/share/keyrings/*",
}

// systemFiles hold credentials of the whole machine, or of the service that runs on it.
var systemFiles = []string{
	"/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/*", "/etc/kubernetes/admin.conf",
}

// systemSockets lead to programs that start others as root, or nearly so.
var systemSockets = []string{
	"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
	"/run/crio/crio.sock", "/run/buildkit/buildkitd.sock", "/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket",
	"/var/snap/lxd/common/lxd/unix.socket", "/run/libvirt/libvirt-sock",
}

// HostSources fills in where secrets and other users are found on an ordinary host: the credential files below home,
// the sockets of container engines, the names of the variables of environ, which has the form of [os.Environ], and
// procfs. Values of variables are not kept, but for the paths of the sockets that SSH_AUTH_SOCK, DOCKER_HOST,
// CONTAINER_HOST and XDG_RUNTIME_DIR lead to. What writes the variants, the program's own models and the outbound list
// are left to the caller. An empty home is not looked at; nothing is read here.
func HostSources(home string, environ []string) Sources {
	s := Sources{Proc: "/proc", Files: append([]string{}, systemFiles...), Sockets: append([]string{}, systemSockets...)}
	if home != "" {
		for _, name := range homeFiles {
			s.Files = append(s.Files, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		s.EnvNames = append(s.EnvNames, name)
		switch name {
		case "SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST":
			if path := strings.TrimPrefix(value, "unix://"); filepath.IsAbs(path) {
				s.Sockets = append(s.Sockets, path)
			}
		case "XDG_RUNTIME_DIR":
			if filepath.IsAbs(value) {
				s.Sockets = append(s.Sockets, filepath.Join(value, "podman", "podman.sock"), filepath.Join(value, "docker.sock"))
			}
		}
	}
	return s
}
