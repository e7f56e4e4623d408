import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { nonFileKind } from '../../base/files/file-exists.ts'

/** A file cannot be read. The message says what to change. */
export class UnreadableError extends Error {
  /** The text, with U+FFFD for invalid bytes, and the fault's offset in UTF-16 units; null = the error has no position. */
  readonly place: { readonly text: string, readonly offset: number } | null
  /** The code of the system's error, such as ENOENT; null = the system could read the file. */
  readonly code: string | null

  constructor(message: string, { place = null, code = null }: Partial<Pick<UnreadableError, 'place' | 'code'>> = {}) {
    super(message)
    this.name = 'UnreadableError'
    this.place = place
    this.code = code
  }
}

const READ_ERRORS: ReadonlyMap<string, string> = new Map(Object.entries({
  ENOENT: 'no such file',
  ENOTDIR: 'no such file: a part of the path is not a directory',
  EACCES: 'the file may not be read by this user',
  EPERM: 'the file may not be read by this user',
  EISDIR: 'this is a directory, not a file',
  ELOOP: 'too many symbolic links lead to this file',
  ENAMETOOLONG: 'the file name is too long',
}))

/** Maximum size of the file: ten times the size of a file with a hundred thousand keys. */
const MAX_BYTES = 64 * 1024 * 1024
const CHUNK_BYTES = 256 * 1024

/** Reads a UTF-8 file. A byte order mark is removed. @throws UnreadableError if the file is missing, unreadable, too large or not UTF-8 */
export function readText(file: string): string {
  let bytes: Buffer
  try {
    bytes = readBytes(file)
  } catch (error) {
    if (error instanceof UnreadableError) throw error
    const { code = '' } = error as NodeJS.ErrnoException
    throw new UnreadableError(READ_ERRORS.get(code) ?? `the file cannot be read: ${code}`, { code })
  }
  if (/^(fffe|feff)/.test(bytes.toString('hex', 0, 2))) throw new UnreadableError('the file is in UTF-16; save it as UTF-8')
  const text = new TextDecoder().decode(bytes)
  const offset = isUtf8(bytes) ? -1 : text.indexOf('\ufffd')
  if (offset === -1) return text
  throw new UnreadableError('this is not in UTF-8; save the file as UTF-8', { place: { text, offset } })
}

/** Reads a file that was read before. @throws UnreadableError like `readText`, and if the file can be read only once */
export function rereadText(file: string): string {
  const other = nonFileKind(file)
  if (other === null || other === 'a directory') return readText(file)
  throw new UnreadableError(`this is ${other}, which can be read only once; name a file`)
}

/** Reads in chunks up to a limit, because a device or a pipe reports no size and may never end. */
function readBytes(file: string): Buffer {
  const fd = openSync(file, 'r')
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    const chunks: Buffer[] = []
    for (let length = 0; length <= MAX_BYTES;) {
      const read = readSync(fd, chunk)
      if (read === 0) return Buffer.concat(chunks)
      chunks.push(Buffer.from(chunk.subarray(0, read)))
      length += read
    }
  } finally {
    closeSync(fd)
  }
  throw new UnreadableError('the file is larger than 64 MB, which no configuration is')
}
