// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// unpackTime bounds the import and the unpacking of an image.
const unpackTime = 90 * time.Second

// openDirectory demands the mount points: the root is read-only for the runtime too, whose own message names none.
func (e *Executor) openDirectory(dir string) (rootfs, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return rootfs{}, err
	}
	if below(e.config.RuntimeDir, real) {
		return rootfs{}, fmt.Errorf("Root.Directory %s holds Config.RuntimeDir, and every run could look into it", dir)
	}
	for _, point := range mountPoints() {
		if fi, err := os.Lstat(filepath.Join(real, point)); err != nil || !fi.IsDir() {
			return rootfs{}, fmt.Errorf("Root.Directory %s lacks the directory %s; make all of %s", dir, point, strings.Join(mountPoints(), " "))
		}
	}
	if err := errors.Join(reachable(real), socketsOf(real, e.conn.address)); err != nil {
		return rootfs{}, err
	}
	if _, known := e.daemonPath(real); !known {
		return rootfs{}, e.unknownPath("Root.Directory", real)
	}
	e.readable = append(e.readable, real)
	return rootfs{dir: real, identity: "directory " + dir}, nil
}

// openImage pins what a reference names now. Nothing is pulled.
func (c *conn) openImage(ctx context.Context, ref string) (rootfs, error) {
	ctx, cancel := c.within(ctx, unpackTime)
	defer cancel()
	image, err := c.client.GetImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return rootfs{}, &DaemonError{
			Op: "image " + ref, Reason: fmt.Sprintf("the daemon has no such image in the namespace %s, and nothing is ever pulled", c.ns),
			Fix: "import or pull it there (ctr -n " + c.ns + " images import FILE), or set Config.Root.Archive", Err: err,
		}
	}
	if err != nil {
		return rootfs{}, explain("image "+ref, err)
	}
	r, err := c.unpack(ctx, image)
	if err != nil {
		return rootfs{}, explain("image "+ref, err)
	}
	r.identity = "image " + ref + " " + image.Target().Digest.String()
	return r, nil
}

// openArchive imports a file under a name that says what is in it, unless that was done before.
func (c *conn) openArchive(ctx context.Context, path string) (rootfs, error) {
	f, err := os.Open(path)
	if err != nil {
		return rootfs{}, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return rootfs{}, err
	}
	ref := fmt.Sprintf("containment.invalid/archive:%x", sum.Sum(nil))
	ask, cancel := c.within(ctx, unpackTime)
	defer cancel()
	if _, err := c.client.GetImage(ask, ref); errdefs.IsNotFound(err) {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return rootfs{}, err
		}
		if _, err := c.client.Import(ask, f, containerd.WithIndexName(ref)); err != nil {
			return rootfs{}, explain("import "+path, err)
		}
	}
	r, err := c.openImage(ctx, ref)
	r.identity = "archive " + r.identity
	return r, err
}

// unpack makes the image's layers into snapshots, if nobody did yet, and puts a layer with our mount points on top. Daemon
// and snapshotter do the work, so it needs no privilege and no path of ours.
func (c *conn) unpack(ctx context.Context, image containerd.Image) (rootfs, error) {
	r := rootfs{snapshotter: defaultSnapshotter}
	if done, err := image.IsUnpacked(ctx, r.snapshotter); err != nil {
		return r, err
	} else if !done {
		if err := image.Unpack(ctx, r.snapshotter); err != nil {
			return r, err
		}
	}
	layers, err := image.RootFS(ctx)
	if err != nil {
		return r, err
	}
	layer, err := mountPointLayer()
	if err != nil {
		return r, err
	}
	sum := digest.FromBytes(layer)
	r.parent = identity.ChainID(append(layers, sum)).String()
	_, err = c.client.SnapshotService(r.snapshotter).Stat(ctx, r.parent)
	if errdefs.IsNotFound(err) {
		err = c.addLayer(ctx, r, identity.ChainID(layers).String(), layer, sum)
	}
	return r, err
}

// addLayer applies an uncompressed layer over a snapshot and keeps the result from the garbage collector.
func (c *conn) addLayer(ctx context.Context, r rootfs, below string, layer []byte, sum digest.Digest) (err error) {
	ctx, done, err := c.client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(2*unpackTime))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := apart(ctx)
		defer cancel()
		err = errors.Join(err, done(ctx))
	}()
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: sum, Size: int64(len(layer))}
	if err := content.WriteBlob(ctx, c.client.ContentStore(), "containment-"+sum.Encoded(), bytes.NewReader(layer), desc); err != nil {
		return err
	}
	service := c.client.SnapshotService(r.snapshotter)
	temporary := fmt.Sprintf("%s-%d", r.parent, time.Now().UnixNano())
	mounts, err := service.Prepare(ctx, temporary, below)
	if err != nil {
		return err
	}
	if _, err = c.client.DiffService().Apply(ctx, desc, mounts); err == nil {
		keep := map[string]string{"containerd.io/gc.root": time.Now().UTC().Format(time.RFC3339)}
		err = service.Commit(ctx, r.parent, temporary, snapshots.WithLabels(keep))
	}
	if err == nil || errdefs.IsAlreadyExists(err) { // somebody else made the same
		return nil
	}
	ctx, cancel := apart(ctx)
	defer cancel()
	return errors.Join(err, service.Remove(ctx, temporary))
}

// mountPointLayer is a layer with the directories that a box needs. It is the same every time.
func mountPointLayer() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, point := range mountPoints() {
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: strings.TrimPrefix(point, "/") + "/", Mode: 0o755, ModTime: time.Unix(0, 0),
		})
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
