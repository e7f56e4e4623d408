import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError, formatProblem } from '../../../src/config/problem.ts'

/**
 * Golden files: what is said of each broken or odd configuration stands beside
 * it, to the letter. After a change that is meant, `npx tap --snapshot` writes
 * them anew; read the difference before committing it.
 */
const DIRECTORY = new URL('broken/', import.meta.url)

/** Literal secrets in the files also contain hunter2, which must not be shown. */
const ENVIRONMENT = {
  SECRET: 'hunter2-hunter2-hunter2',
  URL_WITH_SECRET: 'https://user:hunter2@example.com?hunter2',
  LINES: 'hunter2\nhunter2',
  TEXT: 'hunter2',
  FRACTION: '1.5',
  EMPTY: '',
  NAME: 'named-by-environment',
  QUOTED: '"hunter2-hunter2-hunter2"',
  SINGLE: "'hunter2-hunter2'",
}

for (const name of readdirSync(DIRECTORY).filter(name => name.endsWith('.yaml')).sort()) {
  t.test(name, async t => {
    const told = tell(name)
    const golden = new URL(name.replace('.yaml', '.txt'), DIRECTORY)
    if (process.env['TAP_SNAPSHOT'] === '1') writeFileSync(golden, told)
    t.equal(told, readFileSync(golden, 'utf8'))
    t.notMatch(told, /hunter2/, 'no secret is shown')
  })
}

function tell(name: string): string {
  const home = process.cwd()
  // In the directory of the file, so that messages have its short path.
  process.chdir(new URL('.', DIRECTORY).pathname)
  try {
    const { warnings } = loadConfig(name, ENVIRONMENT)
    return `${warnings.map(problem => formatProblem(problem)).join('\n\n')}\n`
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return `${error.message}\n`
  } finally {
    process.chdir(home)
  }
}
