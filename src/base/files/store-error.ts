/** What is wrong with a SQLite file of the gateway, or with a request to it. */
type StoreErrorCode =
  /** There is no file, or the file does not have the requested item. */
  | 'missing'
  /** The database of another program. */
  | 'foreign'
  /** The file was written by a newer version. */
  | 'newer'
  /** The file was written by an older version and not migrated yet. */
  | 'outdated'
  /** The directory or file cannot be created, opened or written. */
  | 'unwritable'
  /** The file was moved or deleted while open. */
  | 'moved'
  /** The file system cannot share the file between processes. */
  | 'unshared'
  /** A row is invalid. */
  | 'row'
  /** Another live key has this name. */
  | 'taken'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
