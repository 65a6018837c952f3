/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns /* what is in a terminal's description: names of ours */
#undef lines

#include "base/err.h"
#include "base/utf8.h"

#define ESCAPE_MS 50     /* what comes later than that is another key */
#define MARKS_MAX 4      /* combining ones that a character keeps: ncurses draws as many */
#define REPLAY_MAX 16384 /* bytes of stderr, the last ones */
#define WARNING_MAX 512

struct top_terminal {
	int epoll, signals;
	SCREEN *screen; /* NULL: not open */
	bool has_colour;
	int kept_stderr; /* a memfd that stands for it; -1: it is as it was */
	off_t told;      /* of that */
	char warning[WARNING_MAX];
};

/* --- after a crash ---------------------------------------------------------------------------- */

static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
#define CRASHES (sizeof(crashes) / sizeof(crashes[0]))

/* What a signal handler needs, and nothing else can have: there is one terminal. */
static struct {
	volatile sig_atomic_t is_open;
	struct termios modes; /* as it was */
	char text[256];       /* has the terminal show what it did */
	size_t len;
	int stderr_fd; /* as it was; -1 */
	struct sigaction actions[CRASHES];
} saved = { .stderr_fd = -1 };

/* Async-signal-safe, all of it. */
static void restore_terminal(void)
{
	ssize_t n;

	if (!saved.is_open)
		return;
	saved.is_open = false;
	n = write(STDOUT_FILENO, saved.text, saved.len);
	(void)n; /* nothing else can be done */
	tcsetattr(STDOUT_FILENO, TCSANOW, &saved.modes);
	if (saved.stderr_fd >= 0)
		dup2(saved.stderr_fd, STDERR_FILENO);
}

/* What was to be done with it before is done now. */
static void on_crash(int number)
{
	restore_terminal();
	for (size_t i = 0; i < CRASHES; i++)
		if (crashes[i] == number)
			sigaction(number, &saved.actions[i], NULL);
	raise(number);
}

/* On a stack of its own: the thread's may be what has run out. */
static void catch_crashes(void)
{
	static char stack[32768];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = SA_ONSTACK | SA_NODEFER };

	sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < CRASHES; i++)
		sigaction(crashes[i], &action, &saved.actions[i]);
}

static void uncatch_crashes(void)
{
	for (size_t i = 0; i < CRASHES; i++)
		sigaction(crashes[i], &saved.actions[i], NULL);
}

static int save_character(int c)
{
	if (saved.len < sizeof(saved.text))
		saved.text[saved.len++] = (char)c;
	return c;
}

static bool has_capability(const char *text)
{
	return text && text != (const char *)-1;
}

static void save_capability(const char *name)
{
	const char *text = tigetstr(name);

	if (has_capability(text))
		tputs(text, 1, save_character);
}

/* How this terminal leaves what ncurses has it do. */
static void save_terminal(void)
{
	static const char *const names[] = { "sgr0", "op", "rmkx", "cnorm", "rmcup" };

	saved.len = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		save_capability(names[i]);
	save_character('\r');
	save_character('\n');
}

/* --- stderr ----------------------------------------------------------------------------------- */

static bool is_same_terminal(int fd)
{
	struct stat ours, its;

	return isatty(fd) && !fstat(STDOUT_FILENO, &ours) && !fstat(fd, &its) &&
	       ours.st_rdev == its.st_rdev;
}

/* What is written to it would be all over the screen. */
static void keep_stderr(struct top_terminal *t)
{
	t->kept_stderr = -1;
	t->told = 0;
	if (!is_same_terminal(STDERR_FILENO))
		return;
	t->kept_stderr = memfd_create("stderr", MFD_CLOEXEC);
	saved.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (t->kept_stderr >= 0 && saved.stderr_fd >= 0)
		dup2(t->kept_stderr, STDERR_FILENO);
}

static void replay_stderr(struct top_terminal *t)
{
	char text[4096];
	off_t end, at;
	ssize_t n;

	if (saved.stderr_fd >= 0) {
		dup2(saved.stderr_fd, STDERR_FILENO);
		close(saved.stderr_fd);
		saved.stderr_fd = -1;
	}
	if (t->kept_stderr < 0)
		return;
	end = lseek(t->kept_stderr, 0, SEEK_END);
	for (at = end > REPLAY_MAX ? end - REPLAY_MAX : 0; at < end; at += n) {
		n = pread(t->kept_stderr, text, sizeof(text), at);
		if (n <= 0)
			break;
		fwrite(text, 1, (size_t)n, stderr);
	}
	closep(&t->kept_stderr);
	t->kept_stderr = -1;
}

const char *top_terminal_warning(struct top_terminal *t)
{
	struct stat st;
	ssize_t n;
	char *end, *start;

	if (t->kept_stderr < 0 || fstat(t->kept_stderr, &st) < 0 || st.st_size <= t->told)
		return NULL;
	t->told = st.st_size;
	n = pread(t->kept_stderr, t->warning, sizeof(t->warning) - 1,
		  st.st_size > (off_t)sizeof(t->warning) - 1
			  ? st.st_size - (off_t)sizeof(t->warning) + 1
			  : 0);
	if (n <= 0)
		return NULL;
	end = t->warning + n;
	while (end > t->warning && end[-1] == '\n')
		end--;
	*end = 0;
	start = strrchr(t->warning, '\n');
	return start ? start + 1 : t->warning;
}

/* --- open and close --------------------------------------------------------------------------- */

int top_terminal_check(void)
{
	const char *term = getenv("TERM");
	bool can_move;
	int error;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(-ENOTTY, "standard %s is not a terminal",
			       isatty(STDIN_FILENO) ? "output" : "input");
	if (!term || !*term)
		return err_set(-ENOTSUP, "TERM is not set: cannot tell the type of this terminal");
	if (setupterm(term, STDOUT_FILENO, &error) == ERR)
		return err_set(-ENOTSUP, "TERM=%s: unknown terminal type (no terminfo entry)",
			       term);
	can_move = has_capability(tigetstr("cup"));
	del_curterm(cur_term);
	if (!can_move)
		return err_set(-ENOTSUP, "TERM=%s: a terminal that cannot move its cursor", term);
	return 0;
}

static int watch(struct top_terminal *t, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int top_terminal_new(struct top_terminal **out)
{
	static const int numbers[] = { SIGINT,   SIGTERM, SIGHUP,  SIGQUIT,
				       SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD };
	_cleanup_(top_terminal_freep) struct top_terminal *t = calloc(1, sizeof(*t));
	sigset_t set;
	int r;

	if (!t)
		return -ENOMEM;
	t->kept_stderr = t->signals = -1;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->epoll < 0 || t->signals < 0)
		return err_set(-errno, "watch signals: %s", strerror(errno));
	if ((r = watch(t, t->signals)) < 0 || (r = watch(t, STDIN_FILENO)) < 0)
		return err_set(r, "watch the terminal: %s", strerror(-r));
	*out = take_ptr(t);
	return 0;
}

static void choose_colours(struct top_terminal *t)
{
	const char *no_colour = getenv("NO_COLOR");

	t->has_colour = has_colors() && !(no_colour && *no_colour) && start_color() == OK;
	if (!t->has_colour)
		return;
	use_default_colors();
	init_pair(STYLE_HOT, COLOR_RED, -1);
	init_pair(STYLE_WARM, COLOR_YELLOW, -1);
	init_pair(STYLE_COOL, COLOR_GREEN, -1);
}

int top_terminal_open(struct top_terminal *t)
{
	if (tcgetattr(STDOUT_FILENO, &saved.modes) < 0)
		return err_set(-ENOTSUP, "cannot set the terminal mode: %s", strerror(errno));
	setlocale(LC_CTYPE, "");
	t->screen = newterm(NULL, stdout, stdin);
	if (!t->screen)
		return err_set(-ENOTSUP, "TERM=%s: ncurses cannot draw on it", getenv("TERM"));
	signal(SIGTSTP, SIG_DFL); /* ncurses has taken it */
	save_terminal();
	keep_stderr(t);
	saved.is_open = true;
	catch_crashes();
	cbreak();
	noecho();
	nonl(); /* Enter is '\r', and ^J is not */
	set_escdelay(ESCAPE_MS);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	choose_colours(t);
	return 0;
}

void top_terminal_close(struct top_terminal *t)
{
	if (!t->screen)
		return;
	endwin();
	delscreen(t->screen);
	t->screen = NULL;
	saved.is_open = false;
	uncatch_crashes();
	tcsetattr(STDOUT_FILENO, TCSADRAIN, &saved.modes);
	replay_stderr(t);
}

void top_terminal_free(struct top_terminal *t)
{
	if (!t)
		return;
	top_terminal_close(t);
	closep(&t->epoll);
	closep(&t->signals);
	free(t);
}

/* --- events ----------------------------------------------------------------------------------- */

int top_terminal_fd(const struct top_terminal *t)
{
	return t->epoll;
}

void top_terminal_forget(struct top_terminal *t)
{
	(void)t;
	clearok(curscr, TRUE);
}

static void take_size(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
}

/* As every other program: the shell has the terminal meanwhile, as it was. */
static void stop(struct top_terminal *t)
{
	sigset_t set;

	if (t->screen) {
		endwin();
		saved.is_open = false;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* here we are stopped */
	sigprocmask(SIG_BLOCK, &set, NULL);
	saved.is_open = t->screen != NULL;
}

static void resume(struct top_terminal *t)
{
	if (!t->screen)
		return;
	reset_prog_mode();
	take_size();
	top_terminal_forget(t);
	refresh();
}

static enum top_event next_signal(struct top_terminal *t)
{
	struct signalfd_siginfo info;

	if (read(t->signals, &info, sizeof(info)) != sizeof(info))
		return TOP_EVENT_NONE;
	switch (info.ssi_signo) {
	case SIGCHLD:
		return TOP_EVENT_CHILD;
	case SIGTSTP:
		stop(t);
		resume(t);
		return TOP_EVENT_RESIZE;
	case SIGCONT:
		resume(t);
		return TOP_EVENT_RESIZE;
	case SIGWINCH:
		if (t->screen)
			take_size();
		return TOP_EVENT_RESIZE;
	default:
		return TOP_EVENT_QUIT;
	}
}

static int key_of(wint_t code)
{
	static const struct {
		wint_t code;
		int key;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP },
		{ KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_LEFT, TOP_KEY_LEFT },
		{ KEY_RIGHT, TOP_KEY_RIGHT },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP },
		{ KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },
		{ KEY_END, TOP_KEY_END },
		{ KEY_BACKSPACE, TOP_KEY_BACKSPACE },
		{ KEY_ENTER, TOP_KEY_ENTER },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return TOP_KEY_OTHER;
}

/* The terminal is gone: it would be readable for ever. */
static bool has_hung_up(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	int bytes = 0;

	if (poll(&p, 1, 0) <= 0)
		return false;
	return p.revents & (POLLHUP | POLLERR | POLLNVAL) ||
	       (ioctl(STDIN_FILENO, FIONREAD, &bytes) < 0 || !bytes);
}

enum top_event top_terminal_event(struct top_terminal *t, int *key)
{
	enum top_event event = next_signal(t);
	wint_t c;
	int r;

	if (event || !t->screen)
		return event;
	r = get_wch(&c);
	if (r == ERR)
		return has_hung_up() ? TOP_EVENT_QUIT : TOP_EVENT_NONE;
	*key = r == KEY_CODE_YES ? key_of(c) : (int)c;
	return TOP_EVENT_KEY;
}

/* --- drawing ---------------------------------------------------------------------------------- */

void top_terminal_size(const struct top_terminal *t, size_t *width, size_t *height)
{
	(void)t;
	*width = (size_t)getmaxx(stdscr);
	*height = (size_t)getmaxy(stdscr);
}

static attr_t attribute_of(const struct top_terminal *t, enum style style)
{
	switch (style) {
	case STYLE_PLAIN:
		return 0;
	case STYLE_BOLD:
		return A_BOLD;
	case STYLE_DIM:
		return A_DIM;
	default:
		if (t->has_colour)
			return COLOR_PAIR((int)style);
		return style == STYLE_HOT ? A_BOLD : 0;
	}
}

/* Text as the terminal is to have it: of the columns that the screen counted. */
struct wide {
	wchar_t text[512];
	size_t len, marks;
};

static void wide_flush(struct wide *w)
{
	if (w->len)
		addnwstr(w->text, (int)w->len);
	w->len = 0;
}

static void wide_put(struct wide *w, uint32_t c)
{
	size_t columns = code_point_columns(c);

	w->marks = columns ? 0 : w->marks + 1;
	if (!columns && (w->marks > MARKS_MAX || MB_CUR_MAX == 1))
		return;
	if (w->len + 2 > sizeof(w->text) / sizeof(w->text[0]) && columns)
		wide_flush(w);
	if (MB_CUR_MAX == 1 && c >= 0x80) {
		while (columns--)
			w->text[w->len++] = L'?';
		return;
	}
	if (wcwidth((wchar_t)c) < 0)
		c = UTF8_REPLACEMENT;
	if (w->len < sizeof(w->text) / sizeof(w->text[0]))
		w->text[w->len++] = (wchar_t)c;
}

static void draw_text(const char *text, size_t len, attr_t attributes)
{
	struct wide w = { .len = 0 };

	attrset((int)attributes);
	for (size_t i = 0; i < len;) {
		uint32_t c;

		i += utf8_decode(text + i, len - i, &c);
		wide_put(&w, c);
	}
	wide_flush(&w);
	attrset(A_NORMAL);
}

static void draw_line(const struct top_terminal *t, int row, const struct top_line *of)
{
	const struct line *l = &of->line;
	const char *text = strbuf_str(&l->text);
	attr_t all = of->is_reversed ? A_REVERSE : 0;
	size_t at = 0;

	move(row, 0);
	for (size_t i = 0; i < l->spans.len; i++) {
		const struct line_span *s = &l->spans.items[i];

		draw_text(text + at, s->from - at, all);
		draw_text(text + s->from, s->len, all | attribute_of(t, s->style));
		at = s->from + s->len;
	}
	draw_text(text + at, l->text.len - at, all);
	attrset((int)all);
	for (size_t column = l->column; column < (size_t)getmaxx(stdscr); column++)
		addch(' ');
	attrset(A_NORMAL);
}

void top_terminal_draw(struct top_terminal *t, const struct top_screen *s)
{
	int height = getmaxy(stdscr), width = getmaxx(stdscr);

	erase();
	for (int row = 0; row < height && (size_t)row < s->height; row++)
		draw_line(t, row, &s->lines[row]);
	curs_set(s->has_cursor);
	if (s->has_cursor && s->height) {
		size_t column = s->lines[s->height - 1].line.column;

		move(height - 1, column < (size_t)width ? (int)column : width - 1);
	}
	refresh();
}
