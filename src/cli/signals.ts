interface Stops {
  first(signal: NodeJS.Signals): void
  second(signal: NodeJS.Signals): void
}

/** Milliseconds within which one key press may arrive a second time. */
const ECHO = 200

/**
 * Calls `first` at the first SIGTERM or SIGINT and `second` at the next; what
 * comes later is ignored. On a terminal, Ctrl-C reaches the process from the
 * terminal and once more from npm where npm started it: that echo does not count.
 */
export function onStopSignals({ first, second }: Stops): void {
  let count = 0
  let firstAt = 0
  const onSignal = (signal: NodeJS.Signals): void => {
    const isEcho = signal === 'SIGINT' && process.stdin.isTTY && performance.now() - firstAt < ECHO
    if (count === 1 && isEcho) return
    count++
    if (count === 1) {
      firstAt = performance.now()
      first(signal)
    } else if (count === 2) {
      second(signal)
    }
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}
