/** What the command ends with; part of what scripts rely on. */
export const EXIT = {
  ok: 0,
  /** Something failed while it ran. */
  failed: 1,
  /** A wrong option, or a configuration that cannot be used. */
  usage: 2,
} as const

/** The last paragraph of each command's help. */
export const EXIT_CODES = `
Exit codes:
  0  success
  1  failed while running
  2  wrong option or configuration
`
