import { spansOf, type Span } from './span.ts'

const LABEL = 'SECRET'

/**
 * Formats by which vendors let scanners recognise their credentials. Each has a fixed beginning. A failed match has read less than the
 * shortest secret, so the time is linear. Quantifiers have a maximum, because V8 keeps each step of them on a stack.
 */
const TOKENS = new RegExp(`(?<![A-Za-z0-9_])(?:${[
  'sk-[\\w-]{20,2000}', // several vendors of models
  '(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])', // AWS
  'gh[pousr]_[A-Za-z0-9]{36,2000}', 'github_pat_\\w{22,2000}', 'glpat-[\\w-]{20,2000}', // GitHub, GitLab
  'xox[abeoprs]-[\\w-]{10,2000}', 'xapp-[\\w-]{20,2000}', // Slack
  '[rs]k_(?:live|test)_[A-Za-z0-9]{16,2000}', 'whsec_[A-Za-z0-9+/=]{24,2000}', // Stripe, Standard Webhooks
  'AIza[\\w-]{35}', 'GOCSPX-[\\w-]{20,2000}', 'ya29\\.[\\w-]{20,2000}', // Google
  'npm_[A-Za-z0-9]{36}', 'pypi-[\\w-]{40,2000}', 'hf_[A-Za-z0-9]{30,2000}', 'gsk_[A-Za-z0-9]{40,2000}', 'xai-[A-Za-z0-9]{40,2000}', 'r8_[A-Za-z0-9]{30,2000}',
  'SG\\.[\\w-]{22}\\.[\\w-]{43}', 'dop_v1_[a-f0-9]{64}', 'shpat_[a-fA-F0-9]{32}', 'hvs\\.[\\w-]{24,2000}',
  'mgw_[0-9A-Za-z]{38}', // this gateway
].join('|')})`, 'g')
/** A JWT. It begins where a run of its characters begins, so that each run is read once. */
const JWT = /(?<![\w-])eyJ[\w-]{8,8000}\.eyJ[\w-]{8,8000}\.[\w-]{8,8000}/g

const KEY_HEAD = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g
const KEY_TAIL = '-----END '
const DASHES = '-----'
/** Characters of a key in PEM at most, and of its last line. */
const MAX_KEY = 16 * 1024
const MAX_TAIL = 64

/** Credentials in the formats of well-known vendors, JWTs, and private keys in PEM. */
export function findSecrets(text: string): Span[] {
  const jwts = text.includes('eyJ') ? spansOf(JWT, LABEL, text) : []
  const keys = text.includes('PRIVATE KEY') ? privateKeys(text) : []
  return [...spansOf(TOKENS, LABEL, text), ...jwts, ...keys]
}

/** A key that does not end is masked as far as a key can be long. */
function privateKeys(text: string): Span[] {
  const spans: Span[] = []
  let tail = 0
  let end = 0
  for (const { 0: head, index: start } of text.matchAll(KEY_HEAD)) {
    if (start < end) continue
    const from = start + head.length
    if (tail !== -1 && tail < from) tail = text.indexOf(KEY_TAIL, from)
    end = Math.min(text.length, start + MAX_KEY)
    if (tail !== -1 && tail < end) {
      const line = tail + KEY_TAIL.length
      const close = text.slice(line, line + MAX_TAIL).indexOf(DASHES)
      end = close === -1 ? line : line + close + DASHES.length
    }
    spans.push({ start, end, label: LABEL })
  }
  return spans
}
