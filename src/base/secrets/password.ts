import { scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/**
 * A password hash. It is stored as `scrypt:N=32768:r=8:p=1:SALT:HASH`, with salt and hash in base64url. The text needs no quotes in YAML,
 * and hashes with different costs can be mixed.
 */
export interface PasswordHash {
  readonly cost: ScryptCost
  readonly salt: Buffer
  readonly hash: Buffer
}

/** Parameters of scrypt (RFC 7914 section 2). While it runs, N blocks of 128 r bytes are in memory. */
interface ScryptCost {
  readonly N: number
  readonly r: number
  readonly p: number
}

/** Uses 32 MB. OWASP's Password Storage Cheat Sheet recommends these parameters. */
export const DEFAULT_COST: ScryptCost = { N: 32_768, r: 8, p: 3 }

const HASH_PATTERN = /^scrypt:N=(\d{1,10}):r=(\d{1,4}):p=(\d{1,4}):([\w-]+):([\w-]+)$/
/** Minimum work: hashes with less work can be guessed too fast. RFC 7914 section 2 has N = 2^14 for logins of 2009. */
const MIN_WORK = 16_384 * 8
/** Maximum bytes of memory for a hash, because more could crash the process. */
const MAX_MEMORY = 160 * 1024 * 1024
/** Maximum of N r p: five times the default. */
const MAX_WORK = 16 * 32_768 * 8
const MIN_SALT = 16
const MIN_HASH = 32
const MAX_PART_LENGTH = 64

export class PasswordHashError extends Error {
  override readonly name = 'PasswordHashError'
}

/** @throws PasswordHashError for malformed hashes, and for costs that are too low or too high */
export function parsePasswordHash(text: string): PasswordHash {
  const [, N, r, p, salt, hash] = HASH_PATTERN.exec(text) ?? []
  if (salt === undefined || hash === undefined) throw new PasswordHashError('is not whole')
  const cost = { N: Number(N), r: Number(r), p: Number(p) }
  checkCost(cost)
  const bytes = { salt: Buffer.from(salt, 'base64url'), hash: Buffer.from(hash, 'base64url') }
  if (bytes.salt.length < MIN_SALT || bytes.hash.length < MIN_HASH) throw new PasswordHashError('is not whole')
  if (bytes.salt.length > MAX_PART_LENGTH || bytes.hash.length > MAX_PART_LENGTH) throw new PasswordHashError('is too long')
  return { cost, ...bytes }
}

function checkCost({ N, r, p }: ScryptCost): void {
  const isPower = N > 1 && Math.log2(N) % 1 === 0
  if (!isPower || r < 1 || p < 1) throw new PasswordHashError('has a cost that scrypt does not know')
  if (N * r < MIN_WORK) throw new PasswordHashError('is too cheap to withstand guessing')
  if (memoryOf({ N, r, p }) > MAX_MEMORY || N * r * p > MAX_WORK) throw new PasswordHashError('would take too long to check')
}

export function formatPasswordHash({ cost: { N, r, p }, salt, hash }: PasswordHash): string {
  return `scrypt:N=${N}:r=${r}:p=${p}:${salt.toString('base64url')}:${hash.toString('base64url')}`
}

/** Hashes with the default cost. Uses a thread for a fraction of a second. */
export async function hashPassword(password: string, randomBytes: (size: number) => Buffer): Promise<PasswordHash> {
  const salt = randomBytes(MIN_SALT)
  return { cost: DEFAULT_COST, salt, hash: await derive(password, { cost: DEFAULT_COST, salt, hash: Buffer.alloc(MIN_HASH) }) }
}

/** Verifies a password. A wrong password takes the same time as the right password. */
export async function verifyPassword(password: string, kept: PasswordHash): Promise<boolean> {
  return timingSafeEqual(await derive(password, kept), kept.hash)
}

const scryptAsync = promisify(scrypt) as
  (password: string, salt: Buffer, length: number, options: ScryptCost & { maxmem: number }) => Promise<Buffer>

/** Derives the hash. The password is normalised to NFC, because composed and decomposed letters look the same. */
function derive(password: string, { cost, salt, hash }: PasswordHash): Promise<Buffer> {
  return scryptAsync(password.normalize('NFC'), salt, hash.length, { ...cost, maxmem: memoryOf(cost) })
}

/** Bytes of memory that scrypt needs, with a reserve for the last blocks. */
function memoryOf({ N, r, p }: ScryptCost): number {
  return 128 * r * (N + p + 2)
}
