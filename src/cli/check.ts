import { Command } from 'commander'
import type { Path } from '../config/text/document.ts'
import type { Findings } from '../config/text/findings.ts'
import { compileGlob } from '../config/glob.ts'
import { loadConfig, type ConfigCheck } from '../config/load/load.ts'
import { nearest } from '../config/nearest.ts'
import { ConfigError } from '../config/problem.ts'
import type { Config, Target, TranslateMode } from '../config/types.ts'
import { createPriceBook } from '../pricing/prices.ts'
import { hasBudget } from '../pipeline/parts/accounts.ts'
import { unpricedPath } from '../pipeline/priceable.ts'
import { routeTranslations } from '../pipeline/explain.ts'
import type { Translator } from '../protocols/translate.ts'
import { translationLosses } from '../protocols/translation-preview.ts'
import { checkOnline } from './check-online.ts'
import { configOption } from './common/config-option.ts'
import { EXIT, EXIT_CODES } from '../process/exit.ts'
import { countText, plural, problemText } from './common/problems.ts'

const HELP = `
Reads the file as 'serve' does and checks everything that needs no network: the form, names that
refer to each other, environment variables, certificates. Prints every problem with
file:line:column, the line and a hint. Never prints secrets.

Warnings are about what is allowed but probably a mistake: an upstream that no route uses, a route
that an earlier one hides, a model in a key's list that no route serves, a model in a route without
a price, a glob of which no known model has one.

If a key or a group has a budget, it prints the routes with paths whose cost is unknown: under a
budget these are refused.

For each route whose targets speak other protocols than its clients, it prints between which
protocols it translates. With --verbose it prints for each upstream which fields are dropped or
refused.

With --online it also sends a request to each upstream, with each of its credentials: for its list
of models, or a count of tokens. These cost nothing. It prints how long each took, and what is
wrong.

Examples:
  gateway check
  gateway check --verbose
  gateway check --online
  gateway check --config /etc/gateway.yaml && systemctl restart gateway
${EXIT_CODES.replace('success', 'no error; warnings are possible').replace('failed while running', 'with --online: a credential failed')}`

export function checkCommand(): Command {
  return new Command('check')
    .description('Check a configuration and print every problem in it.')
    .addOption(configOption('the configuration'))
    .option('--verbose', 'print the fields that translation drops or refuses')
    .option('--online', 'try the credentials of all upstreams too')
    .addHelpText('after', HELP)
    .action(check)
}

interface CheckOptions {
  readonly config: string
  readonly verbose?: boolean
  readonly online?: boolean
}

async function check({ config: file, verbose = false, online = false }: CheckOptions, command: Command): Promise<void> {
  const config = checkFile(file, verbose, command)
  if (!online) return
  const { text, failures } = await checkOnline(config)
  process.stdout.write(text)
  if (failures > 0) command.error(`${file}: ${plural(failures, 'credential')} failed`, { exitCode: EXIT.failed })
}

function checkFile(file: string, verbose: boolean, command: Command): Config {
  try {
    const unpriced: string[] = []
    const { config, warnings } = loadConfig(file, process.env, null, (config, findings) => {
      warnOfUnpriced(config, findings)
      unpriced.push(...unpricedPathLines(config, route => `${file}:${findings.line(route)}`))
    })
    if (warnings.length > 0) process.stdout.write(`${problemText(warnings, process.stdout)}\n`)
    const { upstreams, routes, keys } = config
    const counts = { upstream: upstreams.size, route: routes.length, key: keys.length }
    const parts = Object.entries(counts).map(([noun, count]) => plural(count, noun))
    const verdict = warnings.length === 0 ? 'no problems' : countText(warnings)
    process.stdout.write(`${[...verbose ? lossLines(config) : translationLines(config), ...unpriced, `${file}: ${verdict} (${parts.join(', ')})`].join('\n')}\n`)
    return config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stdout.write(`${problemText(error.problems, process.stdout)}\n`)
    return command.error(`${file}: ${countText(error.problems)}`, { exitCode: EXIT.usage })
  }
}

/**
 * One line for each route with an unpriced path. Requests for such paths are refused if a key has a budget, so without budgets there are no
 * lines.
 */
function unpricedPathLines({ routes, keys, groups, limits }: Parameters<ConfigCheck>[0], placeOf: (path: Path) => string): string[] {
  if (!hasBudget(limits, ...keys.map(key => key.limits), ...Array.from(groups.values(), group => group.limits))) return []
  return routes.flatMap(({ index, path }) => {
    const unpriced = unpricedPath(path)
    if (unpriced === null) return []
    return [`${placeOf(['routes', index])}: on routes[${index}], keys and groups with a budget are refused requests whose cost is unknown, such as POST ${unpriced}`]
  })
}

/** One line for each route that may translate requests. */
function translationLines({ routes }: Config): string[] {
  const lines = routes.flatMap(route => {
    const pairs = new Set(routeTranslations(route).map(({ translator: { from, to } }) => `${from}->${to}`))
    if (pairs.size === 0) return []
    const verb = route.translate === 'off' ? 'refuses' : 'translates'
    return [`${route.text}: ${verb} ${[...pairs].join(', ')}`]
  })
  return lines.length === 0 ? [] : [...lines, 'The fields that translation drops or refuses: gateway check --verbose']
}

/** One line for each translation to an upstream that does not speak a protocol: it lists what is lost. */
function lossLines({ routes }: Config): string[] {
  return [...new Set(routes.flatMap(route => routeTranslations(route).map(({ place, translator }) => `${place}: ${translationText(translator, route.translate)}`)))]
}

function translationText(translator: Translator, mode: TranslateMode): string {
  const { from, to } = translator
  if (mode === 'off') return `requests of ${from} are refused, because it speaks ${to} and the route has translate: off`
  const { dropped, refused } = translationLosses(translator)
  const isStrict = mode === 'strict'
  const without = dropped.length === 0 || isStrict ? '' : `, without ${dropped.join(', ')}`
  const fields = isStrict ? [...dropped, ...refused] : refused
  return `requests of ${from} are translated to ${to}${without}${fields.length === 0 ? '' : `; refused with ${fields.join(', ')}`}`
}

/** Warns of models without a price. Each model or glob of a route gets one warning for each upstream. */
function warnOfUnpriced(config: Parameters<ConfigCheck>[0], findings: Findings): void {
  const prices = createPriceBook(config)
  const now = new Date()
  const seen = new Set<string>()
  for (const { index, models, targets, on } of config.routes) {
    const route = ['routes', index]
    const entries = [...(models ?? []).entries()]
    const named = entries.filter(([, name]) => !name.includes('*'))
    const globs = entries.filter(([, name]) => name.includes('*'))
    const destinations: (readonly [place: Path, target: Target | null])[] = [
      ...targets.map((target, at) => [pathOfElement(findings, [...route, 'to'], at), target] as const),
      [[...route, 'on', 'context_length'], on.contextLength],
      [[...route, 'on', 'content_filter'], on.contentFilter],
    ]
    for (const [at, target] of destinations) {
      if (target === null) continue
      const { upstream, model } = target
      // If the target names its own model, the price of that model counts, whatever model the client requests.
      const own = model === null ? null : [...at, 'model']
      const isStar = model?.includes('*') === true
      const asked: (readonly [place: Path, alias: string])[] = isStar ? [] : named.length === 0 && model !== null
        ? [[own ?? route, model]]
        : named.map(([nth, name]) => [own ?? pathOfElement(findings, [...route, 'model'], nth), name])
      for (const [place, alias] of asked) {
        const used = model ?? alias
        const id = JSON.stringify([upstream.name, used])
        if (seen.has(id) || prices.priceOf(upstream.url, used, now, alias) !== null) continue
        seen.add(id)
        findings.warn(place, `the model "${used}" at ${upstream.name} has no price: its cost is unknown (null), ` +
          `and keys with a budget are refused it; give it one: models: { "${used}": { price: ... } }${nearestPrice(used, config)}`)
      }
      // Skip simulators, which accept any name and cost nothing.
      if ((model !== null && !isStar) || upstream.simulator) continue
      for (const [nth, written] of globs) {
        const glob = isStar ? model as string : written
        const id = JSON.stringify([upstream.name, glob])
        if (seen.has(id)) continue
        seen.add(id)
        const matches = compileGlob(glob)
        const names = [glob.replaceAll('*', ''), ...prices.knownModels(upstream.url).filter(name => matches(name))]
        if (names.some(name => prices.priceOf(upstream.url, name, now, name) !== null)) continue
        findings.warn(pathOfElement(findings, [...route, 'model'], nth), `no known model of "${glob}" has a price at ${upstream.name}: ` +
          `costs are unknown (null), and keys with a budget are refused unpriced models; add the prices under models${nearestPrice(glob, config)}`)
      }
    }
  }
}

/** `; the nearest is "x"`, for a model with a price whose name begins like this name. Empty if there is none. */
function nearestPrice(name: string, { models }: Pick<Config, 'models'>): string {
  const start = name.replace(/\*.*$/s, '')
  const priced = new Map([...models.values()].filter(({ price }) => price !== null).map(each => [each.name.slice(0, start.length), each.name]))
  const found = start === '' ? null : nearest(start, priced.keys())
  return found === null ? '' : `; the nearest is "${priced.get(found)}"`
}

/** The path of the nth element. Instead of a list with one element, the file may have a single value. */
function pathOfElement(findings: Findings, list: Path, nth: number): Path {
  const element = [...list, nth]
  return findings.located(element) ? element : list
}
