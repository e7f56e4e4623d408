import type { Section } from './navigation.ts'

/** Pages that stand outside the navigation. */
const APART = new Set(['index.md'])

/**
 * Holds the navigation and the files against each other.
 *
 * @param files relative to the directory of the pages
 * @throws Error that names each entry without a page, and each page without an entry
 */
export function checkNavigation(sections: readonly Section[], files: readonly string[]): void {
  const entries = sections.flatMap(({ items }) => items).map(({ link }) => `${link.slice(1)}.md`)
  const pages = files.filter(file => file.endsWith('.md') && !file.startsWith('.') && !APART.has(file))
  const faults = [
    ...entries.filter(entry => !pages.includes(entry)).map(entry => `${entry} is in the navigation and does not exist`),
    ...entries.filter((entry, index) => entries.indexOf(entry) < index).map(entry => `${entry} is in it twice`),
    ...pages.filter(page => !entries.includes(page)).map(page => `${page} is not in the navigation`),
  ]
  if (faults.length > 0) throw new Error(`docs/.vitepress/navigation.ts:\n${faults.join('\n')}`)
}
