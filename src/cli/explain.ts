import { Command } from 'commander'
import type { Config, Key } from '../config/types.ts'
import { didYouMean } from '../config/nearest.ts'
import { GatewayError } from '../errors.ts'
import { explain } from '../explain.ts'
import type { Destination, Explanation } from '../explain.ts'
import type { Miss } from '../routing/table.ts'
import { EXIT, EXIT_CODES } from './exit.ts'
import { loadOrFail } from './problems.ts'

const HELP = `
Follows a request through the configuration without sending it: which endpoint the path is, why
each route before the right one does not take it, and what each target of the route would get.
The gateway's own credentials are shown by their first letters only.

Examples:
  gateway explain --path /v1/chat/completions --model gpt-4.1-mini
  gateway explain --path /v1/messages --model claude-haiku-4-5 --key team-a
  gateway explain --path '/v1beta/models/gemini-2.5-pro:generateContent'
${EXIT_CODES.replace('failed while running', 'the request would be refused')}`

interface Options {
  readonly config: string
  readonly path: string
  readonly model?: string
  readonly key?: string
}

const WHY: Record<Miss, string> = {
  path: 'its path does not match',
  model: 'its models do not match',
  'no model': 'it lists models, and the request names none',
}

/** `gateway explain`: says where a request would go, and why. */
export function explainCommand(): Command {
  return new Command('explain')
    .description('Say where a request would go, and why.')
    .option('-c, --config <file>', 'the configuration', 'gateway.yaml')
    .requiredOption('-p, --path <path>', 'the path of the request, such as /v1/chat/completions')
    .option('-m, --model <name>', 'the model that it asks for')
    .option('-k, --key <name>', 'the name of the key that it presents')
    .addHelpText('after', HELP)
    .action(run)
}

function run(options: Options, command: Command): void {
  const { config } = loadOrFail(options.config, command)
  const key = options.key === undefined ? null : keyNamed(config, options.key, command)
  let explanation: Explanation
  try {
    explanation = explain(config, { path: options.path, model: options.model ?? null, key })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return command.error(`error: ${error.message}`, { exitCode: EXIT.usage })
  }
  process.stdout.write(`${lines(explanation, config).join('\n')}\n`)
  const { refusal } = explanation
  if (refusal) command.error(`error: refused with ${refusal.status} ${refusal.code}`, { exitCode: EXIT.failed })
}

function keyNamed(config: Config, name: string, command: Command): Key {
  const key = config.keys.find(each => each.name === name)
  if (key) return key
  const hint = didYouMean(name, config.keys.map(each => each.name))
  return command.error(`error: no key is named "${name}"${hint}`, { exitCode: EXIT.usage })
}

function lines({ classified, model, own, refusal, steps, candidates }: Explanation, config: Config): string[] {
  const { name, protocol } = classified.endpoint
  const out = [`endpoint  ${name} (${protocol} family)`, `model     ${model ?? 'none'}`]
  if (own) return [...out, 'answered  by the gateway itself']
  for (const { route, miss } of steps) {
    const place = `routes[${route.index}] (${config.file}:${route.line})`
    out.push(`route     ${place}: ${miss === null ? 'takes it' : WHY[miss]}`)
  }
  if (refusal) return [...out, `refused   ${refusal.status} ${refusal.code}: ${refusal.message}`]
  const first = candidates[0]
  return first ? [...out, ...destination(first)] : out
}

function destination({ target, url, model, headers }: Destination): string[] {
  const out = [`upstream  ${target.upstream.name}`, `url       ${url}`, `as model  ${model ?? 'none'}`]
  for (let i = 0; i < headers.length; i += 2) out.push(`header    ${headers[i]}: ${headers[i + 1]}`)
  return out
}
