// SPDX-License-Identifier: Apache-2.0

// Package scratch makes private copies of workspaces and removes them again.
//
// [Copy] copies a tree that a hostile process may be changing at the same moment; [Remove] removes a tree that a hostile
// process has built. Both go from directory descriptor to directory descriptor, one name at a time, and never follow a
// symbolic link. Neither blocks on what it meets, and neither needs more descriptors or stack for a deeper tree.
//
// # What a copy keeps
//
// Names, contents, holes, permission bits and modification times of files and directories, and symbolic links with their
// targets word for word. Set-id and sticky bits are dropped. A file system that shares blocks between files (reflink) is
// asked to do so; elsewhere the kernel copies, or, where it cannot, we do.
//
// # Packing
//
// [Pack] writes a copy to a stream and [Unpack] makes it elsewhere: in another view of the files, as another user, of a sender
// who may be hostile. The format holds no paths, only names between the beginning and the end of directories, and cannot say
// anything but directory, regular file and link.
//
// # Overlays
//
// A second directory can lay its files over the copy: Options.Overlay. It is for trusted versions of files that the tree's
// author may have replaced, moved away, or led elsewhere by a link. They are copied through the same handles as the rest.
// [OpenOverlay] is for whoever packs a tree in another way.
//
// # Errors
//
// Everything that one entry of the source can do wrong is an [*EntryError]; up to 20 of them are reported together. It
// matches [ErrSpecial] for a FIFO, socket or device, [ErrChanged] for an entry that was exchanged while it was looked at,
// [ErrThroughLink] for a protected path that leads through a symbolic link, [ErrLimit] for a tree that is larger than
// allowed, [ErrOverlay] for anything in an overlay that does not belong there, or the error of the system call. [ErrPacked]
// says that a stream was no packed tree. [ErrOptions] and [ErrDestination] say that nothing was copied. After any other error
// the destination holds a part of the copy; give it to Remove.
//
// # What it does not do
//
// Extended attributes, access control lists, access times and inode flags are not copied. Hard links become separate
// files. A copy is not a snapshot: files that change during the copy are copied as they are found, each by itself. What a
// protected symbolic link points to is protected only if it lies below a protected path too. Nothing is flushed to disk.
// Mounts below the source are copied like directories; mounts below a tree to be removed are left alone and reported.
// Systems other than Linux get errors that match [errors.ErrUnsupported].
package scratch
