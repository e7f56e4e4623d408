import type { Accepts, NumberRule } from '../../protocols/neutral/accepts.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import type { RawAccepts, RawNumberRule } from '../raw.ts'

const CHARACTER_CLASS = /^\[[^[\]]+\]$/

const NUMBERS = {
  temperature: 'temperature', top_p: 'topP', top_k: 'topK',
  presence_penalty: 'presencePenalty', frequency_penalty: 'frequencyPenalty',
} as const

export function buildAccepts(raw: RawAccepts, path: Path, findings: Findings): Accepts {
  const numbers: { -readonly [field in typeof NUMBERS[keyof typeof NUMBERS]]?: NumberRule } = {}
  for (const [name, field] of Object.entries(NUMBERS)) {
    const rule = raw[name as keyof typeof NUMBERS]
    if (rule !== undefined) numbers[field] = numberRule(rule, [...path, name], findings)
  }
  const { stop, efforts, system, max_tokens: maxTokens, betas, without, tool_name: toolName } = raw
  if (toolName !== undefined) checkClass(toolName.pattern, [...path, 'tool_name', 'pattern'], findings)
  return {
    ...numbers,
    ...stop !== undefined && { stop },
    ...efforts !== undefined && { efforts: efforts.filter(effort => effort !== undefined) },
    ...system !== undefined && { system },
    ...maxTokens !== undefined && { maxTokens },
    ...without !== undefined && { without: without.filter(field => field !== undefined) },
    ...betas !== undefined && { betas: betas.filter(beta => beta !== undefined) },
    ...toolName?.length !== undefined && toolName.pattern !== undefined && { toolName: { length: toolName.length, pattern: toolName.pattern } },
  }
}

function numberRule(raw: RawNumberRule, path: Path, findings: Findings): NumberRule {
  if (typeof raw === 'boolean') return raw ? {} : false
  const { only, min, max } = raw
  if (min !== undefined && max !== undefined && min > max) findings.error([...path, 'min'], 'min is above max')
  return {
    ...only !== undefined && { only: only.filter(value => value !== undefined) },
    ...min !== undefined && { min },
    ...max !== undefined && { max },
  }
}

function checkClass(pattern: string | undefined, path: Path, findings: Findings): void {
  if (pattern === undefined) return
  try {
    if (CHARACTER_CLASS.test(pattern) && new RegExp(pattern, 'u')) return
  } catch {
    // The pattern is invalid: the error is reported below.
  }
  findings.error(path, 'this is not a class of characters such as [A-Za-z0-9_-]')
}
