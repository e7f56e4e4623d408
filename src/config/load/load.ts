import { basename, dirname, join, resolve } from 'node:path'
import { nonDirectoryAncestor, nonFileKind } from '../../base/files/file-exists.ts'
import { RESERVED_FILES } from '../../base/files/gateway-files.ts'
import { buildAlerts } from '../sections/alerts.ts'
import { applySchema } from '../text/apply-schema.ts'
import { buildAttribution } from '../sections/attribution.ts'
import { buildCallers } from '../sections/callers.ts'
import { buildCluster } from '../sections/cluster.ts'
import { locate, parseYaml, type ParsedYaml } from '../text/document.ts'
import { Findings, fileProblem } from '../text/findings.ts'
import { deepFreeze } from '../freeze.ts'
import { readSchema } from '../json-schema.ts'
import { buildChecks } from '../sections/checks.ts'
import { buildGroups } from '../sections/groups.ts'
import { buildEdit } from '../sections/edits.ts'
import { buildHooks } from '../sections/hooks.ts'
import { buildKeys, exampleKeyOf } from '../sections/keys.ts'
import { buildLimits } from '../sections/limits.ts'
import { buildListeners } from '../sections/listeners.ts'
import { buildLog } from '../sections/log.ts'
import { buildModels } from '../sections/prices.ts'
import { ConfigError, type Problem } from '../problem.ts'
import { buildProxy } from '../sections/proxy.ts'
import type { RawConfig } from '../raw.ts'
import { UnreadableError, rereadText, readText } from '../text/read.ts'
import type { Environment } from '../text/references.ts'
import { buildRoutes } from '../sections/routes.ts'
import { unknownWords, secretRanges } from '../text/secrets.ts'
import { SourceText, type Range } from '../text/source-text.ts'
import { buildTelemetry } from '../sections/telemetry.ts'
import type { Config, LedgerConfig } from '../types.ts'
import { buildUpstreams } from '../sections/upstreams.ts'
import { DEFAULT_TIMEOUTS, buildTimeouts, durationOf } from '../sections/values.ts'
import { addConfigWarnings } from '../sections/warnings.ts'

/** Checks a configuration, and adds warnings at paths of the file. */
export type ConfigCheck = (config: Omit<Config, 'text'>, findings: Findings) => void

export interface LoadedConfig {
  readonly config: Config
  readonly warnings: readonly Problem[]
  /** A key that the file contains as a default value, for use in examples; null = none. */
  readonly exampleKey: string | null
}

/**
 * Reads, checks and resolves a configuration file. Also reads the certificates that the file names, and checks the location of the ledger.
 * @param file the path as the operator wrote it, which problems show
 * @param neededKeys for callers that do not serve: the only top-level keys that must be complete. In other keys, a value with an unset
 * variable is left out. The digest of a key is empty if the key is unknown, or is the default of a reference, because the gateway's own
 * environment may set another key
 * @param extraCheck adds warnings to a configuration without errors
 * @throws ConfigError with all problems at once
 */
export function loadConfig(
  file: string, env: Environment, neededKeys: readonly (keyof RawConfig)[] | null = null, extraCheck: ConfigCheck = () => {},
): LoadedConfig {
  return loadSource(file, read(file), env, neededKeys, extraCheck)
}

/** Loads a file that was loaded before. @throws ConfigError like `loadConfig`, and if the file is a pipe or a device */
export function reloadConfig(file: string, env: Environment): LoadedConfig {
  return loadSource(file, read(file, rereadText), env)
}

/** Loads a text that was read from the file earlier. @throws ConfigError like `loadConfig` */
export function loadConfigText(file: string, text: string, env: Environment): LoadedConfig {
  return loadSource(file, new SourceText(text), env)
}

function loadSource(
  file: string, source: SourceText, env: Environment, neededKeys: readonly (keyof RawConfig)[] | null = null,
  extraCheck: ConfigCheck = () => {},
): LoadedConfig {
  const parsed = parseYaml(source, env)
  const schema = readSchema()
  const secrets = (): Range[] => (parsed.isInvalid ? unknownWords(source, schema) : secretRanges(source, parsed.root, schema))
  const findings = new Findings(file, source, parsed.root, secrets)
  const needed = neededKeys?.map(key => locate(parsed.root, [key])?.at) ?? null
  for (const { offset, message, isUnset } of parsed.faults) {
    const isSpared = isUnset && needed !== null && !needed.some(range => range && offset >= range.start && offset < range.end)
    if (!isSpared) findings.errorAt(offset, message)
  }
  rejectEmptyFile(file, source.text, parsed)
  if (parsed.isInvalid) throw new ConfigError(findings.problems(), { text: source.text })

  const raw = applySchema(schema, parsed.root, findings)
  const config = { ...buildConfig(raw, resolve(file), env, findings, neededKeys === null), text: source.text }
  if (!findings.failed && neededKeys === null) {
    addConfigWarnings(config, findings)
    extraCheck(config, findings)
  }
  const problems = findings.problems()
  if (findings.failed) throw new ConfigError(problems, { text: source.text, files: referencedFiles(config) })
  return { config: deepFreeze(config), warnings: problems, exampleKey: exampleKeyOf(raw, findings) }
}

/** The TLS files that a configuration names: certificates and private keys. */
export function referencedFiles({ server, proxy, upstreams, hooks }: Pick<Config, 'server' | 'proxy' | 'upstreams' | 'hooks'>): string[] {
  const authorities = [proxy?.https, ...upstreams.values(), ...hooks.values()].flatMap(each => each?.ca ?? [])
  const pairs = [server.tls, ...Array.from(upstreams.values(), ({ tls }) => tls?.pair)].flatMap(pair => (pair ? [pair.cert, pair.key] : []))
  return [...pairs, ...authorities]
}

function read(file: string, textOf = readText): SourceText {
  try {
    return new SourceText(textOf(file))
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error
    throw new ConfigError([unreadable(file, error)])
  }
}

function unreadable(file: string, { message, place, code }: UnreadableError): Problem {
  const hint = code === 'ENOENT' ? '; `gateway init` writes one to start from' : ''
  if (place === null) return fileProblem(file, 'error', `${message}${hint}`)
  const source = new SourceText(place.text)
  const excerpt = source.excerpt(place.offset, unknownWords(source, readSchema()))
  return { severity: 'error', file, ...source.position(place.offset), message, excerpt }
}

function rejectEmptyFile(file: string, text: string, { root, isInvalid: broken }: ParsedYaml): void {
  if (broken || root.faulty || root.value !== null) return
  const message = 'the file is empty; it needs upstreams and routes; `gateway init` writes one to start from'
  throw new ConfigError([fileProblem(file, 'error', message)], { text })
}

/** @param isGatewayEnvironment true if `env` is the environment of the gateway itself */
function buildConfig(
  raw: RawConfig, file: string, env: Environment, findings: Findings, isGatewayEnvironment: boolean,
): Omit<Config, 'text'> {
  const directory = dirname(file)
  const models = buildModels(raw, findings)
  const proxy = buildProxy(raw, directory, env, findings)
  const upstreams = buildUpstreams(raw, directory, { models, proxy }, findings)
  const { prometheus, ...listeners } = buildListeners(raw, directory, findings)
  const timeouts = buildTimeouts(raw.timeouts, ['timeouts'], DEFAULT_TIMEOUTS, findings)
  return {
    file,
    ...listeners,
    auth: raw.auth ?? 'keys',
    timeouts, proxy, upstreams,
    routes: buildRoutes(raw, upstreams, timeouts, findings),
    models,
    groups: buildGroups(raw, findings),
    keys: buildKeys(raw, findings, isGatewayEnvironment),
    callers: buildCallers(raw, findings),
    hooks: buildHooks(raw, directory, proxy, findings),
    edit: buildEdit(raw.edit, ['edit'], findings),
    checks: buildChecks(raw, findings),
    limits: buildLimits(raw.limits, ['limits'], findings),
    attribution: buildAttribution(raw, findings),
    ledger: buildLedger(raw, file, findings),
    alerts: buildAlerts(raw, findings),
    billing: { abandoned: raw.billing?.abandoned ?? 'prompt', assumedOutput: raw.billing?.assumed_output ?? 4096 },
    log: buildLog(raw, findings),
    telemetry: buildTelemetry(raw, prometheus, { env, proxy }, findings),
    cluster: buildCluster(raw, listeners.server.listen, dirname(file), findings),
  }
}

function buildLedger({ ledger }: RawConfig, configFile: string, findings: Findings): LedgerConfig | null {
  if (ledger?.file === undefined) return null
  const file = resolve(dirname(configFile), ledger.file)
  if (file === configFile) findings.error(['ledger', 'file'], 'this is the configuration itself; give the ledger a file of its own')
  if (RESERVED_FILES.has(basename(file))) {
    findings.error(['ledger', 'file'], 'the gateway keeps something else under this name; use another, such as gateway.db')
  }
  for (const path of [file, ...Array.from(RESERVED_FILES, name => join(dirname(file), name))]) {
    const other = nonFileKind(path)
    if (other === null) continue
    const message = path === file
      ? `this is ${other}; it takes the path of a file, such as gateway.db`
      : `${path} is ${other}, and the gateway keeps a file there; move it, or the ledger`
    findings.error(['ledger', 'file'], message)
  }
  const inTheWay = nonDirectoryAncestor(file)
  if (inTheWay !== null) {
    findings.error(['ledger', 'file'], `${basename(inTheWay)} in this path is a file, not a directory; choose another path`)
  }
  const keep = ledger.keep === undefined ? null : durationOf(ledger.keep, ['ledger', 'keep'], findings)
  return { file, keep }
}
