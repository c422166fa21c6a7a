{% materialization stream_table, adapter='headrace', supported_languages=['sql'] %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='stream_table') -%}
  {%- set full_refresh = should_full_refresh() -%}

  {{ run_hooks(pre_hooks) }}

  {% if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
  {% endif %}

  {#-- A table or view of that name makes room once it is known that the query is one, and comes back if that fails. --#}
  {% if existing is not none and not existing.is_stream_table %}
    {% do adapter.check_query(sql) %}
  {% endif %}

  {%- set on_change = config.get('on_configuration_change', 'apply') | string -%}
  {%- set done = adapter.build_stream_table(target_relation, sql, {
      'schedule': config.get('schedule'),
      'target_lag': config.get('target_lag'),
      'refresh_mode': config.get('refresh_mode'),
      'properties': config.get('properties'),
      'initialize': config.get('initialize', true),
      'refresh': config.get('refresh', true),
  }, full_refresh, on_change, existing) -%}
  {% if existing is not none and not existing.is_stream_table %}
    {% do adapter.cache_dropped(existing) %}
  {% endif %}

  {% if done.refused and on_change == 'fail' %}
    {{ exceptions.raise_fail_fast_error(
        'The model ' ~ target_relation.render() ~ ' differs from the stream table (' ~ done.refused
        ~ '), and `on_configuration_change` is `fail`. Nothing was changed.') }}
  {% elif done.refused %}
    {% do exceptions.warn(
        'The model ' ~ target_relation.render() ~ ' differs from the stream table (' ~ done.refused
        ~ '), and `on_configuration_change` is `continue`: it keeps its former definition.') %}
  {% endif %}

  {% call noop_statement('main', done.message, done.code, done.rows) %}
    {{ sql }}
  {% endcall %}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
