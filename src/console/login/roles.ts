import type { OidcConfig } from '../../config/types.ts'
import type { Account } from './identity-provider.ts'

/**
 * The configured entries that match the account. An entry with an @ is a mail address, or `*@` and a domain. Any other entry is a group. A
 * group with an @ in its name never matches: otherwise, everybody who can create groups at the provider could become an admin.
 */
export function entriesFor({ admins, viewers }: OidcConfig, { mail, groups }: Pick<Account, 'mail' | 'groups'>): string[] {
  const owned = new Set(groups)
  return [...admins, ...viewers].filter(entry => (entry.includes('@') ? mail !== null && namesMail(entry.toLowerCase(), mail) : owned.has(entry)))
}

function namesMail(entry: string, mail: string): boolean {
  return entry.startsWith('*@') ? mail.slice(mail.lastIndexOf('@')) === entry.slice(1) : mail === entry
}

/** The role of the account; null = no entry gives a role. */
export function roleFor({ admins, viewers }: OidcConfig, entries: readonly string[]): 'admin' | 'viewer' | null {
  if (admins.some(entry => entries.includes(entry))) return 'admin'
  return viewers.some(entry => entries.includes(entry)) ? 'viewer' : null
}
