import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { acceptsText } from '../protocols/vendors/model-rules.ts'
import { keyFileOf } from '../auth/key-file.ts'
import { readKeys } from '../auth/key-reader.ts'
import { GatewayError } from '../base/errors.ts'
import type { Key } from '../config/key-types.ts'
import { didYouMean } from '../config/nearest.ts'
import type { Config, Route } from '../config/types.ts'
import { MISMATCH_TEXT, explain, type Destination, type Explanation } from '../pipeline/explain.ts'
import { asText, parseObject } from '../protocols/neutral/json.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { loadOrFail } from './common/problems.ts'

const HELP = `
Shows the way of a request through the configuration without sending it: the endpoint, why earlier
routes do not match, and what each target of the route would get. Of a credential, only the first
letters are shown. Where a target speaks another protocol, it shows the fields that the target would
not get; with --body, those of that request.

Examples:
  gateway explain --path /v1/chat/completions --model gpt-4.1-mini
  gateway explain --path /v1/messages --model claude-haiku-4-5 --key team-a
  gateway explain --path /v1/messages --body request.json
  gateway explain --path '/v1beta/models/gemini-2.5-pro:generateContent'
${EXIT_CODES.replace('failed while running', 'the gateway would refuse the request')}`

interface Options {
  readonly config: string
  readonly path: string
  readonly model?: string
  readonly key?: string
  readonly body?: string
}

const STRATEGY_TEXT: Record<Route['strategy'], string> = {
  ordered: 'as they stand',
  weighted: 'at random, by weight',
  least_busy: 'fewest running requests first',
  fastest: 'the better of two random targets first, by time to the first byte and running requests',
}

export function explainCommand(): Command {
  return new Command('explain')
    .description('Show where a request would go, and why.')
    .addOption(configOption('the configuration'))
    .requiredOption('-p, --path <path>', 'the path of the request, such as /v1/chat/completions')
    .option('-m, --model <name>', 'the model of the request')
    .option('-k, --key <name>', 'the name of the key of the request')
    .option('-b, --body <file>', 'the body of the request, a JSON file')
    .addHelpText('after', HELP)
    .action(run)
}

function run(options: Options, command: Command): void {
  const { config } = loadOrFail(options.config, command)
  const key = options.key === undefined ? null : findKey(config, options.key, command)
  let explanation: Explanation
  try {
    const body = options.body === undefined ? null : readBody(options.body, command)
    const model = options.model ?? asText(body && parseObject(body.toString('utf8'))?.['model'])
    explanation = explain(config, { path: options.path, model, key, body })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return command.error(`error: ${error.message}`, { exitCode: EXIT.usage })
  }
  process.stdout.write(`${explanationLines(explanation, config).join('\n')}\n`)
  const { refusal } = explanation
  if (refusal) command.error(`error: refused with ${refusal.status} ${refusal.code}`, { exitCode: EXIT.failed })
}

function readBody(file: string, command: Command): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return command.error(`error: ${file}: ${error.message}`, { exitCode: EXIT.usage })
  }
}

function findKey(config: Config, name: string, command: Command): Key {
  const keys = [...config.keys, ...storedKeys(config, command)]
  const key = keys.find(each => each.name === name)
  if (key) return key
  const hint = didYouMean(name, keys.map(each => each.name))
  return command.error(`error: no key is named "${name}"${hint}`, { exitCode: EXIT.usage })
}

function storedKeys({ ledger }: Config, command: Command): Key[] {
  if (ledger === null) return []
  const file = keyFileOf(ledger.file)
  try {
    return readKeys(file).filter(({ revokedAt }) => revokedAt === null).map(({ key }) => key)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return command.error(`error: ${file}: ${error.message}`, { exitCode: EXIT.usage })
  }
}

function explanationLines({ classified, model, own, refusal, steps, candidates }: Explanation, config: Config): string[] {
  const { name, protocol } = classified.endpoint
  const out = [`endpoint  ${name} (${protocol} family)`, `model     ${model ?? 'none'}`]
  if (own) return [...out, 'response  from the gateway itself']
  for (const { route, miss } of steps) {
    const place = `routes[${route.index}] (${config.file}:${route.line})`
    out.push(`route     ${place}: ${miss === null ? 'takes it' : MISMATCH_TEXT[miss]}`)
  }
  if (refusal) return [...out, `refused   ${refusal.status} ${refusal.code}: ${refusal.message}`]
  const route = steps.at(-1)?.route
  if (route) out.push(...routingLines(route))
  return [...out, ...candidates.flatMap((each, n) => [
    ...candidates.length > 1 ? [`target    ${n + 1} of ${candidates.length}${targetOptionsText(each)}`] : [],
    ...destinationLines(each),
  ])]
}

/** How a target is chosen, and what happens when a target fails. Omits values that are the default. */
function routingLines({ targets, strategy, affinity, retries, hedgeAfter, on, resume }: Route): string[] {
  const order = affinity === null
    ? STRATEGY_TEXT[strategy]
    : `one target for ${affinity.by === 'key' ? 'each key' : `each value of ${affinity.name}`}`
  return [
    ...targets.length > 1 ? [`order     ${order}; unhealthy targets last`] : [],
    ...retries > 0 ? [`retries   ${retries} after the first attempt`] : [],
    ...hedgeAfter === null ? [] : [`hedge     another target too when a stream has not begun after ${hedgeAfter / 1000} s`],
    ...on.contextLength ? [`on        context_length: ${on.contextLength.upstream.name}`] : [],
    ...on.contentFilter ? [`on        content_filter: ${on.contentFilter.upstream.name}`] : [],
    ...resume === 'off' ? [] : [`resume    ${resume}`],
  ]
}

function targetOptionsText({ target: { weight, prefill } }: Destination): string {
  return `${weight === 1 ? '' : `, weight ${weight}`}${prefill ? ', prefill' : ''}`
}

function destinationLines({ target, url, model, headers, translation, ownRules, isCountedHere }: Destination): string[] {
  if (isCountedHere) return [`upstream  ${target.upstream.name}`, 'response  from the gateway itself, which counts the tokens']
  const out = [`upstream  ${target.upstream.name}`, `url       ${url}`, `as model  ${model ?? 'none'}`, ...ruleLines(ownRules), ...translationLines(translation)]
  for (let i = 0; i < headers.length; i += 2) out.push(`header    ${headers[i]}: ${headers[i + 1]}`)
  return out
}

function translationLines(translation: Destination['translation']): string[] {
  if (translation === null) return []
  const { from, to, rules, dropped, refused, refusal } = translation
  if (refusal) return [`refused   ${refusal.status} ${refusal.code}: ${refusal.message}`]
  return [
    `translated from ${from} to ${to}`,
    ...ruleLines(rules),
    ...dropped.length === 0 ? [] : [`dropped   ${dropped.join(', ')}`],
    ...refused.length === 0 ? [] : [`refuses   ${refused.join(', ')}`],
  ]
}

function ruleLines(rules: Destination['ownRules']): string[] {
  return rules.map(({ from, accepts }) => `accepts   ${acceptsText(accepts)} (${from})`)
}
