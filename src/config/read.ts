import { readFileSync } from 'node:fs'

/** The file cannot be read as text; the message says what to change. */
export class UnreadableError extends Error {
  /** From 1, where the trouble has a place. */
  readonly line: number | null

  constructor(message: string, line: number | null = null) {
    super(message)
    this.name = 'UnreadableError'
    this.line = line
  }
}

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file; `gateway init` writes one to start from',
  ENOTDIR: 'no such file: a part of the path is not a directory',
  EACCES: 'the file may not be read by this user',
  EPERM: 'the file may not be read by this user',
  EISDIR: 'this is a directory, not a file',
  ELOOP: 'too many symbolic links lead to this file',
  ENAMETOOLONG: 'the file name is too long',
}

/**
 * The text of a file in UTF-8, without a byte order mark.
 * @throws UnreadableError when it is missing, unreadable or not UTF-8
 */
export function readText(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new UnreadableError(READ_ERRORS[code] ?? `the file cannot be read: ${code}`)
  }
  if (/^(fffe|feff)/.test(bytes.toString('hex', 0, 2))) {
    throw new UnreadableError('the file is in UTF-16; save it as UTF-8')
  }
  try {
    return decode(bytes)
  } catch {
    // Only fatal decoding throws: find the line for the message.
    throw new UnreadableError('the line is not in UTF-8; save the file as UTF-8', firstBadLine(bytes))
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

function firstBadLine(bytes: Buffer): number {
  let line = 1
  for (let start = 0; start < bytes.length; line++) {
    const newline = bytes.indexOf(0x0a, start)
    const end = newline === -1 ? bytes.length : newline + 1
    try {
      decode(bytes.subarray(start, end))
    } catch {
      break // this is the line that was looked for
    }
    start = end
  }
  return line
}
