/** Exit codes of all commands. Scripts depend on them. */
export const EXIT = {
  ok: 0,
  /** The command failed while it was running. */
  failed: 1,
  /** An option is wrong, or the configuration is invalid. */
  usage: 2,
} as const

/** The last paragraph of each command's help. */
export const EXIT_CODES = `
Exit codes:
  0  success
  1  failed while running
  2  wrong option or configuration
`
