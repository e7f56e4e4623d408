import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gateway } from './command.ts'

const YAML = `model_list:
  - model_name: gpt-4.1
    litellm_params: { model: openai/gpt-4.1, api_key: os.environ/OPENAI_API_KEY, rpm: 60 }
general_settings: { master_key: os.environ/LITELLM_MASTER_KEY }
`
const ENV = { OPENAI_API_KEY: 'an-operators-key', LITELLM_MASTER_KEY: 'a-key-that-is-long-enough' }

t.test('the configuration is written to standard output; settings that cannot be imported are listed on standard error', async t => {
  const cwd = t.testdir({ 'config.yaml': YAML })
  const { code, stdout, stderr } = await gateway(['import', 'litellm', 'config.yaml'], { cwd })
  t.equal(code, 0)
  t.match(stdout, /^upstreams:\n {2}openai:/m)
  t.match(stderr, /^1 setting without an equal:\nconfig\.yaml:3:87: model_list\[0\]\.litellm_params\.rpm: /)
  t.match(stderr, /\nNeeds in the environment: LITELLM_MASTER_KEY, OPENAI_API_KEY\n$/)
})

t.test('--output writes a configuration that passes gateway check, and does not overwrite an existing file', async t => {
  const cwd = t.testdir({ 'config.yaml': YAML })
  const args = ['import', 'litellm', 'config.yaml', '--output', 'gateway.yaml']
  t.match(await gateway(args, { cwd }), { code: 0, stdout: '' })
  t.match(await gateway(['check'], { cwd, env: ENV }), {
    code: 0, stdout: 'no problems (1 upstream, 1 route, 1 key)',
  })
  const before = readFileSync(join(cwd, 'gateway.yaml'), 'utf8')
  t.match(await gateway(args, { cwd }), { code: 2, stderr: 'it exists already, and is left as it is' })
  t.equal(readFileSync(join(cwd, 'gateway.yaml'), 'utf8'), before)
  args[4] = 'no/such/place.yaml'
  t.match(await gateway(args, { cwd }), { code: 1, stderr: 'cannot write no/such/place.yaml' })
})

t.test('for a file that cannot be imported, the command exits with 2 and prints the reason', async t => {
  const cwd = t.testdir({ 'other.yaml': 'services: {}\n' })
  writeFileSync(join(cwd, 'utf16.yaml'), Buffer.from(`\ufeff${YAML}`, 'utf16le'))
  writeFileSync(join(cwd, 'latin1.yaml'), Buffer.from(YAML.replace('gpt-4.1', 'caf\u00e9'), 'latin1'))
  for (const [file, reason] of [
    ['other.yaml', 'it has no model_list'], ['none.yaml', 'no such file\n'], ['.', 'this is a directory'],
    ['utf16.yaml', 'the file is in UTF-16'], ['latin1.yaml', '2:20: this is not in UTF-8'],
    ['/dev/zero', 'the file is larger than 64 MB'],
  ] as const) {
    const { code, stdout, stderr } = await gateway(['import', 'litellm', file], { cwd })
    t.match({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, `error: cannot import ${file}: `)
    t.match(stderr, reason)
    t.notMatch(stderr, /\n {4}at /)
  }
})
