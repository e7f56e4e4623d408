import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** What some test may write, bytes. */
const NEEDED = 2 ** 31

/** In memory, if there is enough of it: opening a ledger and its keys on a disk waits for the disk several times. */
const PARENT = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir()

/** Makes a folder. @returns its path; the caller removes it */
export function makeFolder(): string {
  return mkdtempSync(join(PARENT, 'gateway-'))
}

/** A test that starts a gateway, and the folder of that gateway. Default: a new one for each gateway. */
export interface FolderOwner extends Pick<Test, 'teardown'> {
  readonly folder?: string
}

/** The test with one folder, in which gateways can start again. It is removed when the test ends. */
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
