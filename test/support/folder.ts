import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Bytes that a test may write. */
const NEEDED = 2 ** 31

/** In memory if there is enough, because the start of a ledger and key store waits for a disk several times. */
const PARENT = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir()

/** Makes a folder. @returns its path; the caller removes it */
export function makeFolder(): string {
  return mkdtempSync(join(PARENT, 'gateway-'))
}

/** A test that starts gateways, and the folder of these gateways. Default: a new folder for each gateway. */
export interface FolderOwner extends Pick<Test, 'teardown'> {
  readonly folder?: string
}

/** The test with one folder for all its gateways. The folder is removed when the test ends. */
export function withFolder(t: Test): FolderOwner & { readonly folder: string } {
  const folder = makeFolder()
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, teardown: handler => t.teardown(handler) }
}

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize >= NEEDED
}
