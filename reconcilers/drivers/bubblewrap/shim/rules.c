#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <sys/syscall.h>

const struct kept_capability kept_capabilities[] = {
    {"CAP_CHOWN", CAP_CHOWN},           {"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE},
    {"CAP_FOWNER", CAP_FOWNER},         {"CAP_FSETID", CAP_FSETID},
    {"CAP_KILL", CAP_KILL},             {"CAP_SETGID", CAP_SETGID},
    {"CAP_SETUID", CAP_SETUID},         {"CAP_SETPCAP", CAP_SETPCAP},
    {"CAP_SYS_CHROOT", CAP_SYS_CHROOT}, {"CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE},
};
const size_t kept_capability_count = ARRAY_LEN(kept_capabilities);

uint64_t kept_capability_mask(void)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < kept_capability_count; i++)
        mask |= 1ULL << kept_capabilities[i].number;
    return mask;
}


const struct refused_call refused_calls[] = {
    // mounts
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_open_tree, EPERM},
    {SYS_move_mount, EPERM},
    {SYS_fsopen, EPERM},
    {SYS_fsconfig, EPERM},
    {SYS_fsmount, EPERM},
    {SYS_fspick, EPERM},
    {SYS_mount_setattr, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_quotactl, EPERM},
    {SYS_quotactl_fd, EPERM},
    {SYS_open_by_handle_at, EPERM},
    {SYS_fanotify_init, EPERM},
    // namespaces (clone's and unshare's flags are judged in filter.c)
    {SYS_setns, EPERM},
    {SYS_clone3, ENOSYS}, // its flags are in memory, where a filter cannot look; the C library falls back to clone
    // the kernel itself
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_kexec_load, EPERM},
#ifdef SYS_kexec_file_load
    {SYS_kexec_file_load, EPERM},
#endif
    {SYS_reboot, EPERM},
    {SYS_acct, EPERM},
    {SYS_syslog, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_vhangup, EPERM},
    {SYS_lookup_dcookie, EPERM},
    {SYS_nfsservctl, ENOSYS},
    // keys are not part of any namespace
    {SYS_keyctl, EPERM},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
#ifdef __x86_64__
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    {SYS_modify_ldt, EPERM},
    {SYS_uselib, ENOSYS},
    {SYS__sysctl, ENOSYS},
#endif
};
const size_t refused_call_count = ARRAY_LEN(refused_calls);
