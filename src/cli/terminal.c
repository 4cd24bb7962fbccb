#include "cli/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { INPUT_MAX = 256, SEQUENCE_WAIT_MS = 25 };

static const char enter[] = "\033[?1049h\033[?25l\033[?7l",
                  leave[] = "\033[0m\033[?1006l\033[?1000l\033[?7h\033[?25h\033[?1049l",
                  mouse_on[] = "\033[?1000h\033[?1006h", // report presses, with decimal numbers
    mouse_off[] = "\033[?1006l\033[?1000l";

static struct termios before;
static volatile sig_atomic_t taken, resized, stopping, ending;
static sigset_t outside; // the signals that were blocked before terminal_take
static unsigned char input[INPUT_MAX];
static size_t input_size;
static bool gone, mouse;
static int mouse_row;

bool terminal_is_one(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
}

bool terminal_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            const char *set = strchr(value, '.');
            return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
        }
    }
    return false;
}

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int64_t n;
    return text && str_to_i64(str_of(text), &n) && n > 0 && n < 10000 ? (int)n : otherwise;
}

void terminal_size(int *columns, int *rows)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        *columns = size.ws_col;
        *rows = size.ws_row;
    } else {
        *columns = number_of("COLUMNS", 80);
        *rows = number_of("LINES", 24);
    }
}

// ---------------------------------------------------------------- taking and restoring

// Restores the terminal. Calls only functions that a signal handler may call.
static void give_back(void)
{
    if (!taken)
        return;
    taken = 0;
    ssize_t ignored = write(STDOUT_FILENO, leave, sizeof leave - 1);
    (void)ignored; // an error cannot be reported here
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static int take_modes(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); // ISIG stays: Ctrl-C and Ctrl-Z are signals
    raw.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
        return -errno;
    taken = 1;
    if (!terminal_write((struct str){enter, sizeof enter - 1}))
        return -EIO;
    terminal_mouse(mouse);
    return 0;
}

void terminal_mouse(bool on)
{
    mouse = on;
    terminal_write(on ? STR(mouse_on) : STR(mouse_off));
}

int terminal_mouse_row(void)
{
    return mouse_row;
}

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopping = 1;
    else if (number == SIGCONT)
        resized = 1;
    else
        ending = number;
}

static void on_fault(int number)
{
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT},
                 others[] = {SIGWINCH, SIGTSTP, SIGCONT},
                 faults[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL};

static void handle(const int *numbers, size_t count, void (*handler)(int), sigset_t *block)
{
    struct sigaction act = {.sa_handler = handler}, old;
    for (size_t i = 0; i < count; i++) {
        if (handler == on_signal)
            sigaddset(block, numbers[i]);
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &act, NULL);
    }
}

int terminal_take(void)
{
    sigset_t block;
    if (tcgetattr(STDIN_FILENO, &before))
        return -errno;
    sigemptyset(&block);
    handle(endings, sizeof endings / sizeof endings[0], on_signal, &block);
    handle(others, sizeof others / sizeof others[0], on_signal, &block);
    handle(faults, sizeof faults / sizeof faults[0], on_fault, NULL);
    signal(SIGPIPE, SIG_IGN); // write() reports a closed terminal
    sigprocmask(SIG_BLOCK, &block, &outside);
    atexit(give_back);
    return take_modes();
}

void terminal_give_back(void)
{
    give_back();
}

// Ends the process by the signal, as other programs end, so that shells and schedulers see the
// reason.
static void end_by(int number)
{
    sigset_t one;
    give_back();
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    _exit(128 + number);
}

static void stop(void)
{
    stopping = 0;
    give_back();
    raise(SIGSTOP); // SIGCONT continues after this line
    tcgetattr(STDIN_FILENO, &before);
    if (take_modes())
        gone = true;
    resized = 1;
}

// ---------------------------------------------------------------- keys

// Waits with signals unblocked, and reads the pending input.
static void read_input(int timeout_ms)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    int n = ppoll(&fd, 1, &time, &outside);
    if (ending)
        end_by(ending);
    if (stopping)
        stop();
    if (n <= 0 || input_size == sizeof input)
        return;
    ssize_t got = read(STDIN_FILENO, input + input_size, sizeof input - input_size);
    if (got > 0)
        input_size += (size_t)got;
    else if ((got < 0 && errno != EINTR && errno != EAGAIN) || (fd.revents & (POLLHUP | POLLERR)))
        gone = true;
}

static void drop(size_t count)
{
    input_size -= count;
    memmove(input, input + count, input_size);
}

static int letter_key(unsigned char c)
{
    switch (c) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'C':
        return KEY_RIGHT;
    case 'D':
        return KEY_LEFT;
    case 'H':
        return KEY_HOME;
    case 'F':
        return KEY_END;
    default:
        return KEY_NONE;
    }
}

static int number_key(int number)
{
    switch (number) {
    case 1:
    case 7:
        return KEY_HOME;
    case 4:
    case 8:
        return KEY_END;
    case 5:
        return KEY_PAGE_UP;
    case 6:
        return KEY_PAGE_DOWN;
    default:
        return KEY_NONE;
    }
}

// Parses "<BUTTON;COLUMN;ROW" and M for a press, m for a release. Only the left button and the
// wheel count.
static int mouse_key(size_t end)
{
    enum { LEFT = 0, WHEEL_UP = 64, WHEEL_DOWN = 65 };
    int numbers[3] = {-1, -1, -1}, at = 0;
    for (size_t i = 3; i < end && at < 3; i++) {
        if (input[i] == ';')
            at++;
        else if (numbers[at] < 10000)
            numbers[at] = (numbers[at] < 0 ? 0 : numbers[at]) * 10 + input[i] - '0';
    }
    if (!mouse || input[end] != 'M' || numbers[2] < 1)
        return KEY_NONE;
    mouse_row = numbers[2] - 1;
    return numbers[0] == LEFT         ? KEY_CLICK
           : numbers[0] == WHEEL_UP   ? KEY_WHEEL_UP
           : numbers[0] == WHEEL_DOWN ? KEY_WHEEL_DOWN
                                      : KEY_NONE;
}

// Parses a sequence after ESC: [ or O, numbers, a letter or ~. Drops an unknown sequence
// completely.
static int sequence(void)
{
    bool of_mouse = input[2] == '<';
    size_t i = of_mouse ? 3 : 2;
    int number = 0;
    while (i < input_size && (isdigit(input[i]) || input[i] == ';')) {
        if (isdigit(input[i]) && number < 1000)
            number = number * 10 + input[i] - '0';
        i++;
    }
    if (i >= input_size) {
        drop(input_size);
        return KEY_ESCAPE;
    }
    int key = of_mouse ? mouse_key(i) : input[i] == '~' ? number_key(number) : letter_key(input[i]);
    drop(i + 1);
    return key;
}

static int next_key(void)
{
    unsigned char c = input[0];
    if (c == 0x1b) {
        if (input_size == 1)
            // if the other bytes of an arrow key do not follow at once, it is the Escape key
            read_input(SEQUENCE_WAIT_MS);
        if (input_size > 2 && (input[1] == '[' || input[1] == 'O'))
            return sequence();
        drop(1);
        return KEY_ESCAPE;
    }
    drop(1);
    return c == '\r' || c == '\n' ? KEY_ENTER
           : c == 0x7f || c == 8  ? KEY_BACKSPACE
           : c == '\t'            ? KEY_TAB
                                  : c;
}

int terminal_wait(int timeout_ms)
{
    if (!input_size && !gone)
        read_input(timeout_ms < 0 ? 0 : timeout_ms);
    return input_size ? next_key() : gone ? KEY_GONE : KEY_NONE;
}

bool terminal_has_key(void)
{
    if (!gone && input_size < sizeof input)
        read_input(0);
    return input_size || gone;
}

bool terminal_changed(void)
{
    bool was = resized;
    resized = 0;
    return was;
}

bool terminal_write(struct str text)
{
    while (text.size) {
        ssize_t n = write(STDOUT_FILENO, text.data, text.size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&fd, 1, -1);
            continue;
        }
        if (n < 0) {
            gone = true;
            return false;
        }
        text = str_slice(text, (size_t)n, text.size);
    }
    return true;
}
