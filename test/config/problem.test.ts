import t from 'tap'
import { ConfigError, formatProblem, placeOf } from '../../src/config/problem.ts'
import type { Problem } from '../../src/config/problem.ts'

const PLACED: Problem = { severity: 'error', file: 'gateway.yaml', line: 41, column: 5, message: 'unknown key', excerpt: '   41 | x\n      |   ^' }
const WHOLE: Problem = { severity: 'warning', file: 'gateway.yaml', line: null, column: null, message: 'no routes', excerpt: null }

t.test('a problem is formatted with its place, the line of the file and a caret', async t => {
  t.equal(formatProblem(PLACED), 'gateway.yaml:41:5: error: unknown key\n   41 | x\n      |   ^')
  t.equal(formatProblem(WHOLE), 'gateway.yaml: warning: no routes')
  t.equal(formatProblem(WHOLE, severity => `<${severity}>`), 'gateway.yaml: <warning>: no routes')
  t.equal(placeOf(PLACED), 'gateway.yaml:41:5')
  t.equal(placeOf(WHOLE), 'gateway.yaml')
})

t.test('the message of a ConfigError contains all problems; a logged ConfigError does not contain the text of the file', async t => {
  const error = new ConfigError([WHOLE, PLACED], { text: 'key: sk-secret', files: ['cert.pem'] })
  t.equal(error.name, 'ConfigError')
  t.equal(error.message, `${formatProblem(WHOLE)}\n\n${formatProblem(PLACED)}`)
  t.equal(error.text, 'key: sk-secret')
  t.strictSame(error.files, ['cert.pem'])
  t.notMatch(JSON.stringify(error), 'sk-secret')
  t.strictSame([new ConfigError([]).text, new ConfigError([]).files], [null, []])
})
