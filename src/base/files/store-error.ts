/** What is wrong with a SQLite file of the gateway, or with an operation on it. */
type StoreErrorCode =
  /** The file does not exist, or does not contain the requested item. */
  | 'missing'
  /** The file is the database of another program. */
  | 'foreign'
  /** A newer version of the gateway wrote the file. */
  | 'newer'
  /** An older version of the gateway wrote the file, and the file is not migrated yet. */
  | 'outdated'
  /** The directory or file cannot be created, opened or written. */
  | 'unwritable'
  /** The file was moved or deleted while it was open. */
  | 'moved'
  /** The file system does not allow several processes to share the file. */
  | 'unshared'
  /** A row of the file is invalid. */
  | 'row'
  /** Another live key has the same name. */
  | 'taken'
  /** A caller has as many live keys as it may have. */
  | 'full'
  /** A caller has made as many keys as it may within a day. */
  | 'often'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
