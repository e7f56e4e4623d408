/** Scripts rely on these exit codes. */
export const EXIT = {
  ok: 0,
  /** The command failed while running. */
  failed: 1,
  /** A wrong option or an invalid configuration. */
  usage: 2,
} as const

/** The last paragraph of each command's help. */
export const EXIT_CODES = `
Exit codes:
  0  success
  1  failed while running
  2  wrong option or configuration
`
