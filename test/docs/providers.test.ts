import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { ROOT } from '../cli/command.ts'
import { KEY_ENVIRONMENT, setAwsEnvironment, startBedrock } from '../support/bedrock.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import { startMetadataServer } from '../support/google-credentials.ts'
import { sendJson } from '../support/token-server.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { samplesOf } from './samples.ts'

/** Runs the samples of the cloud pages, from the first configuration to the first request, against a local server. */
const run = promisify(execFile)
const SKIP = spawnSync('curl', ['--version']).status === 0 ? false : 'needs curl'

/**
 * @param place puts the address of the local server into the configuration
 * @returns the responses to the requests of the page
 */
async function responsesOf(t: Test, page: string, place: (yaml: string) => string): Promise<unknown[]> {
  const samples = samplesOf(readFileSync(join(ROOT, 'docs/providers', page), 'utf8'))
  const config = samples.find(({ language }) => language === 'yaml')?.text ?? ''
  const placed = place(config)
  t.not(placed, config)
  const { url } = await startTestGateway(t, placed, { TEAM_A_KEY: KEY, AZURE_KEY: 'azure-key' })
  const commands = samples.filter(({ language, text }) => language === 'sh' && text.includes('curl ')).flatMap(({ text }) => text.split('\n\n'))
  return await Promise.all(commands.map(async command => {
    const script = command.replace('http://127.0.0.1:8080', url).replace(/^curl /, 'curl --silent --show-error --fail-with-body ')
    const { stdout } = await run('sh', ['-c', script], { env: { ...process.env, TEAM_A_KEY: KEY } })
    return JSON.parse(stdout) as unknown
  }))
}

t.test('the samples of the page Amazon Bedrock work', { skip: SKIP }, async t => {
  setAwsEnvironment(t, KEY_ENVIRONMENT)
  const bedrock = await startBedrock(t)
  const responses = await responsesOf(t, 'bedrock.md', yaml => yaml.replaceAll('region: us-east-1', `region: us-east-1, endpoint: "${bedrock.url}"`))
  t.match(responses, [{ type: 'message', content: [{ text: 'Hello' }] }])
  t.match(bedrock.seen, [{ fault: null, url: '/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke' }])
})

t.test('the samples of the page Google Vertex AI work', { skip: SKIP }, async t => {
  await startMetadataServer(t)
  const asked: string[] = []
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    asked.push(`${req.headers.authorization} ${req.url}`)
    if (req.url?.includes('anthropic')) sendJson(res, 200, { type: 'message', content: [{ type: 'text', text: 'Hello' }] })
    else sendJson(res, 200, { candidates: [{ content: { parts: [{ text: 'Hello' }] } }] })
  }))
  const responses = await responsesOf(t, 'vertex.md', yaml => yaml.replace('location: global', `location: global, endpoint: "${url}"`))
  t.match(responses, [{ type: 'message' }, { candidates: [{ content: { parts: [{ text: 'Hello' }] } }] }])
  t.match(asked.toSorted(), [
    /^Bearer \S+ \/v1\/projects\/my-project\/locations\/global\/publishers\/anthropic\/models\/claude-haiku-4-5@20251001:rawPredict$/,
    /^Bearer \S+ \/v1\/projects\/my-project\/locations\/global\/publishers\/google\/models\/gemini-2\.5-flash:generateContent$/,
  ])
})

t.test('the samples of the page Azure OpenAI work', { skip: SKIP }, async t => {
  const asked: string[] = []
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(body => {
    asked.push(`${req.headers['api-key']} ${req.url} ${(JSON.parse(body.toString()) as { model: string }).model}`)
    sendJson(res, 200, { choices: [{ message: { role: 'assistant', content: 'Hello' } }] })
  }))
  const responses = await responsesOf(t, 'azure.md', yaml => yaml.replace('https://example.openai.azure.com', url))
  t.match(responses, [{ choices: [{ message: { content: 'Hello' } }] }])
  t.strictSame(asked, ['azure-key /openai/v1/chat/completions my-deployment'])
})
