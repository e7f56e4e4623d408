/**
 * CPU per request to Amazon Bedrock with a static credential, and with a signature of AWS over each request.
 *
 *   node bench/signed.ts [rounds] [seconds]
 */
import { endAfter } from './lib/figures.ts'
import { messagesLoad } from './lib/load.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { startGateway, startScript } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 40)
const seconds = Number(process.argv[3] ?? 1)
endAfter(90 + rounds * 2 * (seconds + 2))
Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIATESTTESTTESTTEST', AWS_SECRET_ACCESS_KEY: 'secret', AWS_SESSION_TOKEN: 'x'.repeat(800) })
const upstream = await startScript('upstream', 'upstream.ts')
const start = (name: string, auth: string) => startGateway(upstream.port, {
  name,
  upstreams: `  aws: { bedrock: { region: us-east-1, endpoint: "http://127.0.0.1:${upstream.port}" }, auth: ${auth} }`,
  routes: '  - { to: { upstream: aws, model: m } }',
})
const unsigned = await start('unsigned', '{ bearer: sk-upstream-0123456789 }')
const signed = await start('signed', '{ aws: {} }')
await printCpuExcess([unsigned, signed], rounds, seconds, messagesLoad())
for (const { stop } of [unsigned, signed, upstream]) stop()
