import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** The test with another folder, for one of several gateways that it starts. */
export function withOwnFolder(t: Test): Pick<Test, 'testdir' | 'teardown'> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-cluster-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return { testdir: () => folder, teardown: t.teardown.bind(t) } as unknown as Pick<Test, 'testdir' | 'teardown'>
}
