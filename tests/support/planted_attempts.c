#include "support/planted_attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "profile/analysis.h"

#define CHANNEL_FLOOD 20

int planted_outcome(long result)
{
	return result < 0 ? errno : 0;
}

int planted_had(long fd)
{
	int code = planted_outcome(fd);

	if (fd >= 0) {
		close((int)fd);
	}
	return code;
}

const char *planted_path(const struct planted_aims *aims, const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", aims->folder, name);
	return path;
}

static int waited(pid_t child)
{
	int code = planted_outcome(child);

	if (child == 0) {
		_exit(0);
	}
	if (child > 0) {
		waitpid(child, NULL, 0);
	}
	return code;
}

static int mapped(void *memory)
{
	int code = memory == MAP_FAILED ? errno : 0;

	if (code == 0) {
		munmap(memory, 4096);
	}
	return code;
}

static int fork_by_number(const struct planted_aims *aims)
{
	(void)aims;
	return waited((pid_t)syscall(SYS_fork));
}

static int fork_by_library(const struct planted_aims *aims)
{
	(void)aims;
	return waited(fork());
}

static int fork_by_vfork(const struct planted_aims *aims)
{
	(void)aims;
	pid_t child = vfork();

	if (child == 0) {
		_exit(0);
	}
	return waited(child);
}

static int fork_by_clone3(const struct planted_aims *aims)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	(void)aims;
	return waited((pid_t)syscall(SYS_clone3, &args, sizeof(args)));
}

static void *end_thread(void *context)
{
	return context;
}

static int start_thread(const struct planted_aims *aims)
{
	pthread_t thread;

	(void)aims;
	int code = pthread_create(&thread, NULL, end_thread, NULL);

	if (code == 0) {
		pthread_join(thread, NULL);
	}
	return code;
}

static int exec_nothing(const struct planted_aims *aims)
{
	char *const argv[] = {(char *)"/", NULL};

	(void)aims;
	return planted_outcome(execve("/", argv, argv + 1));
}

static int exec_at(const struct planted_aims *aims)
{
	char *const argv[] = {(char *)"image", NULL};

	return planted_outcome(execveat(aims->image, "no/such/file", argv, argv + 1, 0));
}

static int socket_inet(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(socket(AF_INET, SOCK_STREAM, 0));
}

static int socket_unix(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int socket_netlink(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int socket_pair(const struct planted_aims *aims)
{
	int pair[2];

	(void)aims;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
		return errno;
	}
	close(pair[0]);
	close(pair[1]);
	return 0;
}

/* Without a socket of its own the channel must do. */
static int with_socket(int family, const void *address, size_t bytes,
	int (*call)(int fd, const struct sockaddr *address, socklen_t bytes))
{
	int fd = socket(family, SOCK_STREAM, 0);
	int code = planted_outcome(call(fd >= 0 ? fd : ANALYSIS_FD, address, (socklen_t)bytes));

	if (fd >= 0) {
		close(fd);
	}
	return code;
}

static int connect_inet(const struct planted_aims *aims)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(aims->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return with_socket(AF_INET, &address, sizeof(address), connect);
}

static size_t abstract_address(struct sockaddr_un *address, const char *name, const char *suffix)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	int len = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "%s%s", name, suffix);

	return offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len;
}

static int connect_abstract(const struct planted_aims *aims)
{
	struct sockaddr_un address;
	size_t bytes = abstract_address(&address, aims->abstract, "");

	return with_socket(AF_UNIX, &address, bytes, connect);
}

static int bind_abstract(const struct planted_aims *aims)
{
	struct sockaddr_un address;
	size_t bytes = abstract_address(&address, aims->abstract, "-planted");

	return with_socket(AF_UNIX, &address, bytes, bind);
}

static int bind_inet(const struct planted_aims *aims)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0};

	(void)aims;
	return with_socket(AF_INET, &address, sizeof(address), bind);
}

static int who_is_the_peer(const struct planted_aims *aims)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	(void)aims;
	return planted_outcome(getsockopt(ANALYSIS_FD, SOL_SOCKET, SO_PEERCRED, &peer, &bytes));
}

static int trace_daemon(const struct planted_aims *aims)
{
	int code = planted_outcome(ptrace(PTRACE_SEIZE, aims->daemon, NULL, NULL));

	if (code == 0) {
		ptrace(PTRACE_INTERRUPT, aims->daemon, NULL, NULL);
		waitpid(aims->daemon, NULL, __WALL);
		ptrace(PTRACE_DETACH, aims->daemon, NULL, NULL);
	}
	return code;
}

static int read_daemon(const struct planted_aims *aims)
{
	char byte;
	const struct iovec here = {&byte, 1};
	const struct iovec there = {(void *)(uintptr_t)aims->daemon_address, 1};

	return planted_outcome(process_vm_readv(aims->daemon, &here, 1, &there, 1, 0));
}

static int probe_daemon(const struct planted_aims *aims)
{
	return planted_outcome(kill(aims->daemon, 0));
}

static int probe_everybody(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(kill(-1, 0));
}

static int signal_daemon(const struct planted_aims *aims)
{
	return planted_outcome(syscall(SYS_tgkill, aims->daemon, aims->daemon, 0));
}

static int open_pidfd(const struct planted_aims *aims)
{
	return planted_had(syscall(SYS_pidfd_open, aims->daemon, 0));
}

static int map_code(const struct planted_aims *aims)
{
	(void)aims;
	return mapped(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int map_image_code(const struct planted_aims *aims)
{
	return mapped(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, aims->image, 0));
}

static int map_image(const struct planted_aims *aims)
{
	return mapped(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, aims->image, 0));
}

static int make_data_code(const struct planted_aims *aims)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)aims;
	return memory == MAP_FAILED ? ENOMEM
								: planted_outcome(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
}

static int read_implies_exec(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(syscall(SYS_personality, 0xffffffffu));
}

static int shared_memory(const struct planted_aims *aims)
{
	(void)aims;
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	return id < 0 ? errno : planted_outcome(shmctl(id, IPC_RMID, NULL));
}

static int memory_file(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(memfd_create("planted", 0));
}

static int io_uring(const struct planted_aims *aims)
{
	struct io_uring_params params = {0};

	(void)aims;
	return planted_had(syscall(SYS_io_uring_setup, 2, &params));
}

static int bpf_map(const struct planted_aims *aims)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	(void)aims;
	return planted_had(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int user_faults(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(syscall(SYS_userfaultfd, O_CLOEXEC));
}

static int perf_event(const struct planted_aims *aims)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK};

	(void)aims;
	return planted_had(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int key_ring(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1));
}

static int mount_there(const struct planted_aims *aims)
{
	const char *folder = planted_path(aims, "planted-mount");

	return mount("none", folder, "tmpfs", 0, NULL) != 0 ? errno : planted_outcome(umount(folder));
}

static int leave_namespace(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(unshare(CLONE_NEWUTS));
}

static int join_namespace(const struct planted_aims *aims)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY);
	int code = planted_outcome(setns(fd >= 0 ? fd : aims->image, CLONE_NEWUTS));

	if (fd >= 0) {
		close(fd);
	}
	return code;
}

static int raise_limit(const struct planted_aims *aims)
{
	struct rlimit limit;

	(void)aims;
	if (getrlimit(RLIMIT_AS, &limit) != 0) {
		return errno;
	}
	limit.rlim_cur = limit.rlim_max;
	return planted_outcome(setrlimit(RLIMIT_AS, &limit));
}

static int limit_daemon(const struct planted_aims *aims)
{
	struct rlimit limit;

	return planted_outcome(prlimit(aims->daemon, RLIMIT_NOFILE, NULL, &limit));
}

static int dumpable_again(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int another_filter(const struct planted_aims *aims)
{
	(void)aims;
	int code = planted_outcome(prctl(PR_SET_SECCOMP, 2, NULL, 0, 0));

	return code == EFAULT ? 0
						  : code; /* of the filter that was not there: it would have been taken */
}

static int handle_signal(const struct planted_aims *aims)
{
	(void)aims;
	return signal(SIGXCPU, SIG_IGN) == SIG_ERR ? errno : 0;
}

static int type_into_terminal(const struct planted_aims *aims)
{
	int code = planted_outcome(ioctl(STDERR_FILENO, TIOCSTI, "x"));

	(void)aims;
	return code == ENOTTY ? 0 : code; /* it was asked, and is none */
}

static int set_affinity(const struct planted_aims *aims)
{
	cpu_set_t all;

	(void)aims;
	memset(&all, 0xff, sizeof(all));
	return planted_outcome(sched_setaffinity(0, sizeof(all), &all));
}

/* To itself it has no way; to the daemon it may, which must not keep them. */
static int send_descriptors(const struct planted_aims *aims)
{
	json_t *body =
		json_pack("{s:s,s:i,s:s}", "type", "progress", "permille", 1, "phase", "symbolizing");
	int files[ANALYSIS_FILES];
	struct error err = {0};
	bool sent = body != NULL;

	for (size_t i = 0; i < ANALYSIS_FILES; i++) {
		files[i] = aims->image;
	}
	for (size_t i = 0; sent && i < CHANNEL_FLOOD; i++) {
		sent = analysis_send(ANALYSIS_FD, body, files, ANALYSIS_FILES, &err);
	}
	json_decref(body);
	return sent ? 0 : EIO;
}

static const struct planted_attempt SYSTEM_ATTEMPTS[] = {
	PLANTED_ATTEMPT(fork_by_number),
	PLANTED_ATTEMPT(fork_by_library),
	PLANTED_ATTEMPT(fork_by_vfork),
	PLANTED_ATTEMPT(fork_by_clone3),
	PLANTED_ATTEMPT(start_thread),
	PLANTED_ATTEMPT(exec_nothing),
	PLANTED_ATTEMPT(exec_at),
	PLANTED_ATTEMPT(socket_inet),
	PLANTED_ATTEMPT(socket_unix),
	PLANTED_ATTEMPT(socket_netlink),
	PLANTED_ATTEMPT(socket_pair),
	PLANTED_ATTEMPT(connect_inet),
	PLANTED_ATTEMPT(connect_abstract),
	PLANTED_ATTEMPT(bind_abstract),
	PLANTED_ATTEMPT(bind_inet),
	PLANTED_ATTEMPT(who_is_the_peer),
	PLANTED_ATTEMPT(trace_daemon),
	PLANTED_ATTEMPT(read_daemon),
	PLANTED_ATTEMPT(probe_daemon),
	PLANTED_ATTEMPT(probe_everybody),
	PLANTED_ATTEMPT(signal_daemon),
	PLANTED_ATTEMPT(open_pidfd),
	PLANTED_ATTEMPT(map_code),
	PLANTED_ATTEMPT(map_image_code),
	PLANTED_ATTEMPT(map_image),
	PLANTED_ATTEMPT(make_data_code),
	PLANTED_ATTEMPT(read_implies_exec),
	PLANTED_ATTEMPT(shared_memory),
	PLANTED_ATTEMPT(memory_file),
	PLANTED_ATTEMPT(io_uring),
	PLANTED_ATTEMPT(bpf_map),
	PLANTED_ATTEMPT(user_faults),
	PLANTED_ATTEMPT(perf_event),
	PLANTED_ATTEMPT(key_ring),
	PLANTED_ATTEMPT(mount_there),
	PLANTED_ATTEMPT(leave_namespace),
	PLANTED_ATTEMPT(join_namespace),
	PLANTED_ATTEMPT(raise_limit),
	PLANTED_ATTEMPT(limit_daemon),
	PLANTED_ATTEMPT(dumpable_again),
	PLANTED_ATTEMPT(another_filter),
	PLANTED_ATTEMPT(handle_signal),
	PLANTED_ATTEMPT(type_into_terminal),
	PLANTED_ATTEMPT(set_affinity),
	PLANTED_ATTEMPT(send_descriptors),
	{NULL, NULL},
};

static void try_list(const struct planted_attempt *list, const struct planted_aims *aims)
{
	for (; list->name != NULL; list++) {
		char line[128];
		int code = list->try(aims);
		int len = snprintf(line, sizeof(line), "planted %s %s\n", list->name,
			code == 0 ? "ok" : strerrorname_np(code));

		if (write(STDERR_FILENO, line, (size_t)len) != len) {
			abort();
		}
	}
}

void planted_try_all(const struct planted_aims *aims)
{
	try_list(planted_file_attempts, aims);
	try_list(SYSTEM_ATTEMPTS, aims);
}
