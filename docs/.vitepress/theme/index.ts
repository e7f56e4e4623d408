import DefaultTheme from 'vitepress/theme'
import type { DefaultTheme as Defaults, Theme } from 'vitepress'
import { searchWeight } from '../navigation.ts'
import './style.css'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ siteData }) => {
    // Not in config.ts: from there a function reaches the browser as text, which the Content-Security-Policy forbids to run.
    const search: Defaults.Config['search'] = {
      provider: 'local',
      options: { miniSearch: { searchOptions: { boostDocument: searchWeight } } },
    }
    siteData.value = { ...siteData.value, themeConfig: { ...siteData.value.themeConfig, search } }
  },
} satisfies Theme
