/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_FETCH_H
#define BPF_FETCH_H

/*
 * May a thread fetch a page of its own that is not present? A target chooses what its memory is
 * mapped from: a page behind a FUSE server, an NFS server or a userfaultfd may never come. A thread
 * that waits for it in our program does not go on, and while it waits the kernel detaches no BPF
 * program that may sleep. So only anonymous memory and files of local file systems are fetched.
 */

/* linux/magic.h */
#define FUSE_SUPER_MAGIC 0x65735546 /* fuseblk, too, which names a device */
#define TMPFS_MAGIC 0x01021994      /* memfd_create(), too */
#define RAMFS_MAGIC 0x858458f6
#define HUGETLBFS_MAGIC 0x958458f6
#define OVERLAYFS_SUPER_MAGIC 0x794c7630 /* a mapping is of the file below, but for odd kernels */
#define ZFS_SUPER_MAGIC 0x2fc12fc1       /* names its devices by itself */
#define FS_REQUIRES_DEV 1                /* file_system_type.fs_flags */

static __always_inline bool is_file_local(struct file *file)
{
	struct super_block *sb = BPF_CORE_READ(file, f_inode, i_sb);
	__u64 magic = BPF_CORE_READ(sb, s_magic);

	switch (magic) {
	case FUSE_SUPER_MAGIC:
		return false;
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
	case HUGETLBFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case ZFS_SUPER_MAGIC:
		return true;
	default:
		return BPF_CORE_READ(sb, s_type, fs_flags) & FS_REQUIRES_DEV;
	}
}

static __always_inline bool is_mapping_local(struct vm_area_struct *vma)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) &&
	    BPF_CORE_READ(vma, vm_userfaultfd_ctx.ctx))
		return false;
	return !file || is_file_local(file);
}

static long fetch_meets(struct task_struct *task, struct vm_area_struct *vma, bool *is_fetchable)
{
	*is_fetchable = is_mapping_local(vma);
	return 0;
}

/* False, too, where another thread of the process changes the mappings at this moment. */
VERIFIED_ONCE int is_fetchable(__u64 addr)
{
	bool found = false;

	bpf_find_vma(bpf_get_current_task_btf(), addr, fetch_meets, &found, 0);
	return found;
}

#endif
