// What the dashboard's JSON has to be, by Grafana's own schema: the dashboard, and the options and fields of
// the kinds of panels that it uses. "@grafana/schema" is the version that tsconfig's `paths` name.
import type { AnnotationQuery, Dashboard, FieldConfig, Panel, RowPanel, VariableModel } from "@grafana/schema";
import type * as bargauge from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type * as stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as timeseries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** A type as JSON holds it: an enum of texts is one of its texts. */
type Plain<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends readonly (infer Item)[]
        ? Plain<Item>[]
        : { [Key in keyof T]: Plain<T[Key]> };

/** The reader's choice, never a data source of this dashboard's own. */
type DataSource = { type: "prometheus"; uid: "${datasource}" };

/** What the Prometheus data source reads; the schema leaves queries open. */
type Target = {
  datasource: DataSource;
  editorMode: "code" | "builder";
  expr: string;
  format?: "table" | "time_series" | "heatmap";
  instant: boolean;
  legendFormat: string;
  range: boolean;
  refId: string;
};

/** A panel of one kind, all of whose options are there: Grafana fills none in on import. */
type PanelOf<Kind extends string, Options, Custom = never> = Plain<
  Omit<Panel, "type" | "options" | "fieldConfig" | "targets" | "datasource">
> & {
  type: Kind;
  title: string;
  description: string;
  datasource: DataSource;
  targets: Target[];
  options: Plain<Options>;
  fieldConfig: {
    defaults: Plain<Omit<FieldConfig, "custom">> & { custom?: Plain<Custom> };
    overrides: { matcher: { id: string; options?: unknown }; properties: { id: string; value?: unknown }[] }[];
  };
};

/** These came with Grafana 11; 10 does not look at them. */
type BarGaugeOptions = bargauge.Options & { legend: unknown };
type StatOptions = stat.Options & { percentChangeColorMode: unknown };

type AnyPanel =
  | Plain<RowPanel>
  | PanelOf<"bargauge", BarGaugeOptions>
  | PanelOf<"stat", StatOptions>
  | PanelOf<"table", table.Options, table.FieldConfig>
  | PanelOf<"timeseries", timeseries.Options, timeseries.FieldConfig>;

/** The Prometheus data source reads three more fields of an annotation. */
type Annotation = Omit<Plain<AnnotationQuery>, "target"> & {
  target: { refId: string; expr: string };
  titleFormat: string;
  textFormat: string;
  tagKeys: string;
};

export type Shape = Omit<Plain<Dashboard>, "panels" | "annotations" | "templating"> & {
  panels: AnyPanel[];
  annotations: { list: Annotation[] };
  templating: { list: Plain<VariableModel>[] };
};
