import type { OidcConfig } from '../../config/types.ts'
import type { Account } from './identity-provider.ts'

/**
 * The entries of the configuration that match an account. An entry with an @ is a mail address, or `*@` and a domain;
 * any other is a group. A group whose name looks like a mail address never matches: otherwise anyone who creates
 * groups at the provider could create an admin.
 */
export function entriesFor({ admins, viewers }: OidcConfig, { mail, groups }: Pick<Account, 'mail' | 'groups'>): string[] {
  const owned = new Set(groups)
  return [...admins, ...viewers].filter(entry => (entry.includes('@') ? mail !== null && namesMail(entry.toLowerCase(), mail) : owned.has(entry)))
}

function namesMail(entry: string, mail: string): boolean {
  return entry.startsWith('*@') ? mail.slice(mail.lastIndexOf('@')) === entry.slice(1) : mail === entry
}

/** The role that these entries give; null = none. */
export function roleFor({ admins, viewers }: OidcConfig, entries: readonly string[]): 'admin' | 'viewer' | null {
  if (admins.some(entry => entries.includes(entry))) return 'admin'
  return viewers.some(entry => entries.includes(entry)) ? 'viewer' : null
}
