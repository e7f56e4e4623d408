import type { OpenAPIV3_1 } from 'openapi-types'
import { consoleOpenApi } from '../../src/console/openapi.ts'
import { commandsPage } from './commands.ts'
import { configurationPage } from './configuration.ts'
import { consoleApiPage } from './console-api.ts'
import { errorsPage } from './errors.ts'
import { hookOpenApi } from './hook-openapi.ts'
import { httpApiPage } from './http-api.ts'
import { modelRulesPage } from './model-rules.ts'
import { openApi } from './openapi.ts'
import { rawTypes } from './raw-types.ts'
import { simulatorPage } from './simulator.ts'
import { translationPage } from './translation.ts'

export interface GeneratedPage {
  readonly file: URL
  readonly text: string
}

/** Every file that is generated as it should be now. */
export async function pages(): Promise<GeneratedPage[]> {
  const api = openApi()
  const consoleApi = await consoleOpenApi('1') as OpenAPIV3_1.Document
  const texts: Record<string, string> = {
    'reference/configuration.md': configurationPage(),
    'reference/commands.md': commandsPage(),
    'reference/http-api.md': httpApiPage(api),
    'reference/console-api.md': consoleApiPage(consoleApi),
    'reference/translation.md': translationPage(),
    'reference/models.md': modelRulesPage(),
    'reference/simulator.md': await simulatorPage(),
    'errors.md': errorsPage(),
    '../src/config/raw-schema.ts': rawTypes(),
    'public/openapi.json': `${JSON.stringify(api, null, 2)}\n`,
    'public/hook-openapi.json': hookOpenApi(),
    'public/console-openapi.json': `${JSON.stringify(consoleApi, null, 2)}\n`,
  }
  return Object.entries(texts).map(([name, text]) => ({ file: new URL(`../${name}`, import.meta.url), text }))
}
