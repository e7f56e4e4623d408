/** `env=prod, project=alpha` */
export function tagText(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags).map(([name, value]) => `${name}=${value}`).join(', ')
}
