#!/bin/sh
# Makes echarts.min.js: only the charts and components that static/js/charts.js draws with, as one ES module.
# Usage: sh build.sh [FOLDER]: where to write it (default: next to this script). Needs npm; the versions are pinned here.
set -eu
out=$(cd "${1:-$(dirname "$0")}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '{"private": true}' > package.json
npm install --silent --no-fund --no-audit echarts@5.6.0 esbuild@0.25.12 >&2
cat > entry.js <<'ENTRY'
import { use } from "echarts/core";
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent, LegendPlainComponent, TooltipComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";
use([
  BarChart, CustomChart, LineChart, ScatterChart,
  DataZoomInsideComponent, GridComponent, LegendPlainComponent, TooltipComponent, SVGRenderer,
]);
export { getInstanceByDom, init } from "echarts/core";
ENTRY
npx --no-install esbuild entry.js --bundle --minify --format=esm --legal-comments=eof \
  --define:process.env.NODE_ENV='"production"' --outfile="$out/echarts.min.js" --log-level=warning
